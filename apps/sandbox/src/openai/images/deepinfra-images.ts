/** `POST /deepinfra/v1/images/generations`: OpenAI's words, with what DeepInfra thinks of them. Billed by the picture. */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { picture } from '../../media/files/images.ts';
import { Instructions, isForbidden } from '../../media/instructions.ts';
import { isBilled, sendAnswer, spoilt } from '../../media/sandbox-file.ts';
import { parseObject, Refusal, type Routes } from '../../router.ts';
import { assertKey, refusalAsTold } from '../errors.ts';
import { FLAT_IMAGES } from './image-offers.ts';

const MOST_IMAGES = 4;
const PIXELS = { least: 128, most: 1_920 };

export function deepInfraImageRoutes(bill: SandboxBill): Routes {
  const instructions = new Instructions('deepinfra', refusalAsTold);
  return {
    'POST /deepinfra/v1/images/generations': async (call) => {
      assertKey(call);
      const { model, prompt, n, width, height } = asked(await call.text());
      const told = await instructions.follow(call, prompt);
      if (!told) return;
      const { fault } = told;
      const made = Math.max(0, n - (fault === 'fewer' ? 1 : 0));
      const units = { unit: 'image', quantity: made, per: 1, price: model.usd };
      if (isBilled(fault)) bill.chargeUnits(`img-${randomUUID()}`, model.id, units, fault);
      if (isForbidden(told)) throw new Refusal(400, { detail: { error: 'NSFW content detected in the prompt' } });
      const data = Array.from({ length: made }, (_, i) => {
        const bytes = picture({ seed: `${prompt} ${i}`, width, height, format: 'jpeg' });
        const file = spoilt({ type: 'image/jpeg', bytes }, fault);
        return { url: null, revised_prompt: null, b64_json: file.bytes.toString('base64') };
      });
      sendAnswer(call, { created: Math.floor(Date.now() / 1_000), data }, fault);
    },
  };
}

function asked(json: string) {
  const body = parseObject(json);
  if (!body)
    throw wrong(
      [],
      'Input should be a valid dictionary or object to extract fields from',
      'model_attributes_type',
      null,
    );
  const { model: id, prompt, n = 1, size = '1024x1024', response_format: format = 'b64_json' } = body;
  if (typeof id !== 'string') throw wrong(['model'], 'Field required', 'missing', null);
  if (typeof prompt !== 'string') throw wrong(['prompt'], 'Field required', 'missing', null);
  if (typeof n !== 'number' || !Number.isInteger(n) || n < 1)
    throw wrong(['n'], 'Input should be greater than or equal to 1', 'greater_than_equal', n);
  if (n > MOST_IMAGES) throw wrong(['n'], `Input should be less than or equal to ${MOST_IMAGES}`, 'less_than_equal', n);
  if (format !== 'b64_json') throw wrong(['response_format'], "Input should be 'b64_json'", 'enum', format);
  const model = FLAT_IMAGES.find((each) => each.id === id);
  if (!model) throw new Refusal(404, { detail: { error: `The model \`${id}\` does not exist` } });
  const [width = 0, height = 0] = /^(\d+)x(\d+)$/.exec(String(size))?.slice(1).map(Number) ?? [];
  if (Math.min(width, height) < PIXELS.least || Math.max(width, height) > PIXELS.most)
    throw wrong(['size'], `Width and height should be from ${PIXELS.least} to ${PIXELS.most}`, 'value_error', size);
  return { model, prompt, n, width, height };
}

function wrong(field: readonly string[], msg: string, type: string, input: unknown): Refusal {
  return new Refusal(422, { detail: [{ type, loc: ['body', ...field], msg, input }] });
}
