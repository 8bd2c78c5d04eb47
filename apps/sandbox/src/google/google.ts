/** Google's Gemini API at `/google`: chat models, image models and Veo. */
import type { SandboxBill } from '../bill.ts';
import { DirectiveRunner } from '../media/directive-runner.ts';
import type { Call, Routes } from '../router.ts';
import { createChatHandler } from './chat.ts';
import { CHAT_MODELS } from './chat-models.ts';
import { assertKey, createError, createFaultError } from './errors.ts';
import { generateImage } from './gemini.ts';
import { GEMINI_IMAGES, VEO } from './google-offers.ts';
import { VeoOperations } from './veo.ts';

const METHOD = /^models\/([^/:]+):(\w+)$/;
const OPERATION = /^models\/[^/]+\/operations\/([^/]+)$/;
const DOWNLOAD = /^files\/([^/:]+):download$/;

export class GoogleServer {
  private readonly veo: VeoOperations;
  private readonly handleChat: ReturnType<typeof createChatHandler>;
  private readonly directiveRunner = new DirectiveRunner('google', createFaultError);

  constructor(private readonly bill: SandboxBill) {
    this.veo = new VeoOperations(bill);
    this.handleChat = createChatHandler(bill);
  }

  routes(): Routes {
    return {
      'POST /google/v1beta/*': (call) => this.handlePost(call),
      'GET /google/v1beta/models': (call) => {
        assertKey(call);
        const models = listModels();
        const start = Number(call.query.get('pageToken') ?? 0);
        const end = start + Number(call.query.get('pageSize') ?? 50);
        const nextPageToken = end < models.length ? `${end}` : undefined;
        call.sendJson(200, { models: models.slice(start, end), nextPageToken });
      },
      'GET /google/v1beta/*': (call) => this.handleGet(call),
      'GET /google-media/:name': (call) => this.veo.sendVideo(call),
    };
  }

  close(): void {
    this.veo.close();
  }

  private async handlePost(call: Call): Promise<void> {
    assertKey(call);
    const [, model = '', method = ''] = METHOD.exec(call.parameter) ?? [];
    const chatModel = CHAT_MODELS.get(model);
    const isStream = method === 'streamGenerateContent' && call.query.get('alt') === 'sse';
    if (chatModel && (isStream || method === 'generateContent')) return this.handleChat(call, chatModel, isStream);
    const imageOffer = GEMINI_IMAGES[model];
    if (imageOffer && method === 'generateContent')
      return generateImage(call, [model, imageOffer], this.bill, this.directiveRunner);
    if (VEO[model] && method === 'predictLongRunning') return this.veo.startOperation(call, model);
    throw createError(
      404,
      `models/${model} is not found for API version v1beta, or is not supported for ${method}. Call ListModels to see the list of available models and their supported methods.`,
    );
  }

  private handleGet(call: Call): void {
    assertKey(call);
    const [, operation] = OPERATION.exec(call.parameter) ?? [];
    const [, file] = DOWNLOAD.exec(call.parameter) ?? [];
    if (operation !== undefined) this.veo.sendStatus(call, operation);
    else if (file !== undefined && call.query.get('alt') === 'media') this.veo.redirectToFile(call, file);
    else throw createError(404, 'Requested entity was not found.');
  }
}

function listModels() {
  const toModelJson =
    (...supportedGenerationMethods: string[]) =>
    (id: string) => ({ name: `models/${id}`, supportedGenerationMethods });
  return [
    ...[...CHAT_MODELS.keys()].map(toModelJson('generateContent', 'streamGenerateContent')),
    ...Object.keys(GEMINI_IMAGES).map(toModelJson('generateContent')),
    ...Object.keys(VEO).map(toModelJson('predictLongRunning')),
  ];
}
