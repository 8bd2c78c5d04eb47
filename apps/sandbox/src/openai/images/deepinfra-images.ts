/** `POST /deepinfra/v1/images/generations`: OpenAI's parameters with DeepInfra's validation. Billed by the image. */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { DirectiveRunner, isForbidden } from '../../media/directive-runner.ts';
import { createImage } from '../../media/files/images.ts';
import { applyFileFault, isBilled, sendResponse } from '../../media/sandbox-file.ts';
import { HttpError, parseObject, type Routes } from '../../router.ts';
import { assertKey, createFaultError } from '../errors.ts';
import { FLAT_IMAGES } from './image-offers.ts';

const MAX_IMAGES = 4;
const PIXELS = { min: 128, max: 1_920 };

export function deepInfraImageRoutes(bill: SandboxBill): Routes {
  const directiveRunner = new DirectiveRunner('deepinfra', createFaultError);
  return {
    'POST /deepinfra/v1/images/generations': async (call) => {
      assertKey(call);
      const { model, prompt, n, width, height } = parseRequest(await call.readText());
      const applied = await directiveRunner.runDirective(call, prompt);
      if (!applied) return;
      const { fault } = applied;
      const imageCount = Math.max(0, n - (fault === 'fewer' ? 1 : 0));
      const units = { unit: 'image', quantity: imageCount, per: 1, price: model.usd };
      if (isBilled(fault)) bill.chargeUnits(`img-${randomUUID()}`, model.id, units, fault);
      if (isForbidden(applied)) throw new HttpError(400, { detail: { error: 'NSFW content detected in the prompt' } });
      const data = Array.from({ length: imageCount }, (_, i) => {
        const bytes = createImage({ seed: `${prompt} ${i}`, width, height, format: 'jpeg' });
        const file = applyFileFault({ type: 'image/jpeg', bytes }, fault);
        return { url: null, revised_prompt: null, b64_json: file.bytes.toString('base64') };
      });
      sendResponse(call, { created: Math.floor(Date.now() / 1_000), data }, fault);
    },
  };
}

function parseRequest(json: string) {
  const body = parseObject(json);
  if (!body)
    throw invalidFieldError(
      [],
      'Input should be a valid dictionary or object to extract fields from',
      'model_attributes_type',
      null,
    );
  const { model: id, prompt, n = 1, size = '1024x1024', response_format: format = 'b64_json' } = body;
  if (typeof id !== 'string') throw invalidFieldError(['model'], 'Field required', 'missing', null);
  if (typeof prompt !== 'string') throw invalidFieldError(['prompt'], 'Field required', 'missing', null);
  if (typeof n !== 'number' || !Number.isInteger(n) || n < 1)
    throw invalidFieldError(['n'], 'Input should be greater than or equal to 1', 'greater_than_equal', n);
  if (n > MAX_IMAGES)
    throw invalidFieldError(['n'], `Input should be less than or equal to ${MAX_IMAGES}`, 'less_than_equal', n);
  if (format !== 'b64_json') throw invalidFieldError(['response_format'], "Input should be 'b64_json'", 'enum', format);
  const model = FLAT_IMAGES.find((candidate) => candidate.id === id);
  if (!model) throw new HttpError(404, { detail: { error: `The model \`${id}\` does not exist` } });
  const [width = 0, height = 0] = /^(\d+)x(\d+)$/.exec(String(size))?.slice(1).map(Number) ?? [];
  if (Math.min(width, height) < PIXELS.min || Math.max(width, height) > PIXELS.max)
    throw invalidFieldError(
      ['size'],
      `Width and height should be from ${PIXELS.min} to ${PIXELS.max}`,
      'value_error',
      size,
    );
  return { model, prompt, n, width, height };
}

function invalidFieldError(field: readonly string[], msg: string, type: string, input: unknown): HttpError {
  return new HttpError(422, { detail: [{ type, loc: ['body', ...field], msg, input }] });
}
