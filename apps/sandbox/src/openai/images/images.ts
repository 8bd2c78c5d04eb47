/** `POST /images/generations` and `/images/edits` of the providers that speak OpenAI's images API. Billed by image. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bill } from '../../bill.ts';
import { isPicture, type PictureFormat, picture } from '../../media/files/pictures.ts';
import { readDirective } from '../../provider/directive.ts';
import { FaultCounter, failedOutright } from '../../provider/faults.ts';
import { type Call, parseObject, type Routes } from '../../router.ts';
import { assertKey, refusal, refusalAsTold } from '../errors.ts';
import { findImageModel, IMAGE_MODELS, type ImageModel } from './image-offers.ts';

type Fields = Readonly<Record<string, unknown>>;

const PARAMETERS: ReadonlySet<string> = new Set([
  ...['model', 'prompt', 'n', 'size', 'quality', 'output_format', 'output_compression', 'background', 'moderation'],
  ...['user', 'response_format', 'input_fidelity', 'image', 'image[]', 'mask'],
]);
const SIZES = ['1024x1024', '1536x1024', '1024x1536'];
const FORMATS = ['png', 'jpeg', 'webp'];
const MOST_IMAGES = 10;
/** Output tokens that OpenAI counts for a square image. */
const TOKENS: Readonly<Record<string, number>> = { low: 272, medium: 1_056, high: 4_160 };

export function imageRoutes(bill: Bill): Routes {
  const routes: Record<string, unknown> = {};
  for (const provider of Object.keys(IMAGE_MODELS)) {
    const faults = new FaultCounter();
    const serve = async (call: Call, fields: Fields) => {
      const asked = readImageRequest(fields, provider);
      const directive = readDirective(asked.prompt);
      const fault = faults.next(directive, provider);
      if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
      if (failedOutright(fault, call, refusalAsTold)) return;
      bill.chargeUnits(
        `img-${randomUUID()}`,
        asked.model.id,
        { unit: 'image', quantity: asked.n, per: 1, price: asked.usd },
        fault,
      );
      call.json(200, answerTo(asked));
    };
    routes[`POST /${provider}/v1/images/generations`] = async (call: Call) => {
      assertKey(call);
      const body = parseObject((await call.body()).toString());
      if (!body) throw refusal(400, 'We could not parse the JSON body of your request.');
      await serve(call, body);
    };
    routes[`POST /${provider}/v1/images/edits`] = async (call: Call) => {
      assertKey(call);
      await serve(call, await formIn(call));
    };
  }
  return routes as Routes;
}

/** @throws Refusal 400 unless there is an image in it */
async function formIn(call: Call): Promise<Fields> {
  const headers = { 'content-type': call.request.headers['content-type'] ?? '' };
  const form = await new Response(new Uint8Array(await call.body()), { headers }).formData().catch(() => undefined);
  const file = form?.get('image') ?? form?.get('image[]');
  if (!form || !(file instanceof File)) throw refusal(400, "Missing required parameter: 'image'.", 'image');
  if (!isPicture(Buffer.from(await file.arrayBuffer())))
    throw refusal(
      400,
      'Invalid image file or mode for image 1, please check your image file.',
      'image',
      'invalid_image_file',
    );
  return Object.fromEntries(form);
}

interface ImageRequest {
  readonly model: ImageModel;
  readonly prompt: string;
  readonly n: number;
  readonly quality: string;
  readonly size: string;
  readonly format: string;
  readonly usd: string;
}

/** @throws Refusal in OpenAI's shape */
function readImageRequest(fields: Fields, provider: string): ImageRequest {
  const model = findImageModel(provider, fields.model);
  const unknown = Object.keys(fields).find((name) => !PARAMETERS.has(name));
  if (unknown !== undefined) throw refusal(400, `Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter');
  if (model.isOpenAi && fields.response_format !== undefined)
    throw refusal(400, "Unknown parameter: 'response_format'.", 'response_format', 'unknown_parameter');
  const { prompt } = fields;
  if (typeof prompt !== 'string' || prompt === '')
    throw refusal(400, "Missing required parameter: 'prompt'.", 'prompt');
  const n = Number(fields.n ?? 1);
  if (!Number.isInteger(n) || n < 1 || n > MOST_IMAGES)
    throw refusal(400, `Invalid 'n': expected a value from 1 to ${MOST_IMAGES}.`, 'n', 'integer_out_of_range');
  const quality = wordIn(fields, 'quality', Object.keys(model.usd), 'medium');
  const size = wordIn(fields, 'size', model.isOpenAi ? SIZES : undefined, SIZES[0] as string);
  const [square, oblong] = model.usd[quality] as readonly [string, string];
  const format = wordIn(fields, 'output_format', FORMATS, 'png');
  return { model, prompt, n, quality, size, format, usd: size === SIZES[0] ? square : oblong };
}

function wordIn(fields: Fields, name: string, words: readonly string[] | undefined, byDefault: string): string {
  const word = fields[name] ?? 'auto';
  if (word === 'auto') return byDefault;
  if (typeof word === 'string' && (words?.includes(word) ?? true)) return word;
  const supported = [...(words ?? []), 'auto'].map((each) => `'${each}'`).join(', ');
  throw refusal(400, `Invalid value: '${word}'. Supported values are: ${supported}.`, name, 'invalid_value');
}

function answerTo({ model, prompt, n, quality, size, format }: ImageRequest) {
  const data = Array.from({ length: n }, (_, i) => ({
    b64_json: pictureAs({ words: `${prompt} ${i}`, size, format }),
  }));
  const created = Math.floor(Date.now() / 1_000);
  if (!model.isOpenAi) return { created, data };
  const output_tokens = n * (TOKENS[quality] ?? 0);
  const input_tokens = Math.ceil(prompt.length / 4);
  const input_tokens_details = { text_tokens: input_tokens, image_tokens: 0 };
  const usage = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens, input_tokens_details };
  return { created, background: 'opaque', data, output_format: format, quality, size, usage };
}

function pictureAs({ words, size, format }: { words: string; size: string; format: string }): string {
  const [width = 1_024, height = 1_024] = size.split('x').map(Number);
  return picture({ words, width, height, format: format as PictureFormat }).toString('base64');
}
