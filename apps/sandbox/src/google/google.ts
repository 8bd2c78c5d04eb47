/** Google's Gemini API at `/google`: models that draw, and Veo. */
import type { SandboxBill } from '../bill.ts';
import { Instructions } from '../media/instructions.ts';
import type { Call, Routes } from '../router.ts';
import { assertKey, refusal, refusalAsTold } from './errors.ts';
import { draw } from './gemini.ts';
import { GEMINI_IMAGES, VEO } from './google-offers.ts';
import { VeoOperations } from './veo.ts';

const METHOD = /^models\/([^/:]+):(\w+)$/;
const OPERATION = /^models\/[^/]+\/operations\/([^/]+)$/;
const DOWNLOAD = /^files\/([^/:]+):download$/;

export class GoogleServer {
  private readonly veo: VeoOperations;
  private readonly instructions = new Instructions('google', refusalAsTold);

  constructor(private readonly bill: SandboxBill) {
    this.veo = new VeoOperations(bill);
  }

  routes(): Routes {
    return {
      'POST /google/v1beta/*': (call) => this.make(call),
      'GET /google/v1beta/models': (call) => {
        assertKey(call);
        call.json(200, { models: listed() });
      },
      'GET /google/v1beta/*': (call) => this.look(call),
      'GET /google-media/:name': (call) => this.veo.send(call),
    };
  }

  close(): void {
    this.veo.close();
  }

  private async make(call: Call): Promise<void> {
    assertKey(call);
    const [, model = '', method = ''] = METHOD.exec(call.parameter) ?? [];
    const offer = GEMINI_IMAGES[model];
    if (offer && method === 'generateContent') return draw(call, [model, offer], this.bill, this.instructions);
    if (VEO[model] && method === 'predictLongRunning') return this.veo.begin(call, model);
    throw refusal(
      404,
      `models/${model} is not found for API version v1beta, or is not supported for ${method}. Call ListModels to see the list of available models and their supported methods.`,
    );
  }

  private look(call: Call): void {
    assertKey(call);
    const [, operation] = OPERATION.exec(call.parameter) ?? [];
    const [, file] = DOWNLOAD.exec(call.parameter) ?? [];
    if (operation !== undefined) this.veo.tell(call, operation);
    else if (file !== undefined && call.query.get('alt') === 'media') this.veo.redirect(call, file);
    else throw refusal(404, 'Requested entity was not found.');
  }
}

function listed() {
  const as = (method: string) => (id: string) => ({ name: `models/${id}`, supportedGenerationMethods: [method] });
  return [...Object.keys(GEMINI_IMAGES).map(as('generateContent')), ...Object.keys(VEO).map(as('predictLongRunning'))];
}
