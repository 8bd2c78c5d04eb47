/** Parses and validates an image request, in JSON or a form, as OpenAI does. */
import { type JsonObject } from '#kernel';
import { isImage } from '../../media/files/images.ts';
import { type Call, parseObject } from '../../router.ts';
import { invalidRequestError } from '../errors.ts';
import { parseForm } from '../forms.ts';
import { type GptImage, getGptImage } from './image-offers.ts';

export interface SandboxImageRequest {
  readonly model: GptImage;
  readonly prompt: string;
  readonly n: number;
  readonly quality: string;
  readonly size: string;
  readonly width: number;
  readonly height: number;
  readonly format: 'png' | 'jpeg' | 'webp';
  readonly background: string;
  /** Number of images to edit, without the mask. */
  readonly sources: number;
  readonly fidelity: string;
}

const PARAMETERS = [
  'model',
  'prompt',
  'n',
  'size',
  'quality',
  'output_format',
  'output_compression',
  'background',
  'user',
  'safety_identifier',
  'stream',
  'partial_images',
];
const GENERATION_PARAMETERS: ReadonlySet<string> = new Set([...PARAMETERS, 'moderation']);
const EDIT_PARAMETERS: ReadonlySet<string> = new Set([...PARAMETERS, 'input_fidelity', 'image', 'image[]', 'mask']);
const SIZES = ['1024x1024', '1536x1024', '1024x1536'];
const FORMATS = ['png', 'jpeg', 'webp'];
const MAX_IMAGES = 10;
const MAX_SOURCES = 16;
const EDGE_STEP = 16;
const MAX_EDGE = 3_840;
const MAX_PIXELS = 3_840 * 2_160;
const MAX_PROMPT_LENGTH = 32_000;

/** @throws HttpError 400 or 413 */
export async function parseGeneration(call: Call): Promise<SandboxImageRequest> {
  const body = parseObject(await call.readText());
  if (!body) throw invalidRequestError(400, 'We could not parse the JSON body of your request.');
  return parseRequest(body, GENERATION_PARAMETERS, 0);
}

/** @throws HttpError 400 or 413 */
export async function parseEdit(call: Call): Promise<SandboxImageRequest> {
  const form = await parseForm(call);
  const files = [...form.getAll('image'), ...form.getAll('image[]')];
  if (files.length === 0)
    throw invalidRequestError(400, "Missing required parameter: 'image'.", 'image', 'missing_required_parameter');
  if (files.length > MAX_SOURCES)
    throw invalidRequestError(400, `Too many images: at most ${MAX_SOURCES}.`, 'image', 'array_above_max_length');
  for (const [i, file] of files.entries()) await assertImage(file, i);
  const mask = form.get('mask');
  if (mask !== null) await assertImage(mask, 0);
  const fields = Object.fromEntries([...form].map(([name, value]) => [name, name === 'n' ? Number(value) : value]));
  return parseRequest(fields, EDIT_PARAMETERS, files.length);
}

async function assertImage(file: File | string, index: number): Promise<void> {
  if (file instanceof File && isImage(Buffer.from(await file.arrayBuffer()))) return;
  const message = `Invalid image file or mode for image ${index + 1}, please check your image file.`;
  throw invalidRequestError(400, message, 'image', 'invalid_image_file');
}

function parseRequest(fields: JsonObject, parameters: ReadonlySet<string>, sources: number): SandboxImageRequest {
  const model = getGptImage(fields.model);
  const unknown = Object.keys(fields).find((name) => !parameters.has(name));
  if (unknown !== undefined)
    throw invalidRequestError(400, `Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter');
  const { prompt, n = 1 } = fields;
  if (typeof prompt !== 'string' || prompt === '')
    throw invalidRequestError(400, "Missing required parameter: 'prompt'.", 'prompt', 'missing_required_parameter');
  if (prompt.length > MAX_PROMPT_LENGTH)
    throw invalidRequestError(400, `Invalid 'prompt': string too long.`, 'prompt', 'string_above_max_length');
  if (typeof n !== 'number' || !Number.isInteger(n) || n < 1 || n > MAX_IMAGES)
    throw invalidRequestError(
      400,
      `Invalid 'n': expected a value from 1 to ${MAX_IMAGES}.`,
      'n',
      'integer_out_of_range',
    );
  if (fields.stream !== undefined && String(fields.stream) !== 'false')
    throw invalidRequestError(400, 'The sandbox does not stream images.', 'stream', 'unsupported_value');
  const size = isSupportedSize(fields.size, model)
    ? fields.size
    : parseChoice(fields, 'size', SIZES, SIZES[0] as string);
  const [width = 0, height = 0] = size.split('x').map(Number);
  const format = parseChoice(fields, 'output_format', FORMATS, 'png') as SandboxImageRequest['format'];
  const background = parseChoice(fields, 'background', ['transparent', 'opaque'], 'opaque');
  if (background === 'transparent' && format === 'jpeg')
    throw invalidRequestError(
      400,
      'Transparent background is not supported for JPEG output format.',
      'background',
      'invalid_value',
    );
  if (fields.input_fidelity !== undefined && model.fidelities.length === 0)
    throw invalidRequestError(
      400,
      `The model '${model.id}' does not support the 'input_fidelity' parameter.`,
      'input_fidelity',
      'invalid_input_fidelity_model',
    );
  parseChoice(fields, 'moderation', ['low'], 'low');
  return {
    model,
    prompt,
    n,
    quality: parseChoice(fields, 'quality', Object.keys(model.tokens), 'high'),
    size,
    width,
    height,
    format,
    background,
    sources,
    fidelity: parseChoice(fields, 'input_fidelity', model.fidelities, 'low'),
  };
}

/**
 * Whether the model supports other sizes than the standard ones, and this size is allowed. The edges must be multiples
 * of 16 pixels and at most 3840 pixels, with a ratio of at most 3:1. The area is at most 3840 × 2160 pixels.
 */
function isSupportedSize(size: unknown, { supportsAnySize }: GptImage): size is string {
  const [width = 0, height = 0] = /^(\d+)x(\d+)$/.exec(String(size))?.slice(1).map(Number) ?? [];
  const [longer, shorter] = [Math.max(width, height), Math.min(width, height)];
  const fits = shorter > 0 && longer <= 3 * shorter && longer <= MAX_EDGE && width * height <= MAX_PIXELS;
  return supportsAnySize === true && fits && width % EDGE_STEP === 0 && height % EDGE_STEP === 0;
}

function parseChoice(fields: JsonObject, name: string, choices: readonly string[], byDefault: string): string {
  const { [name]: word = 'auto' } = fields;
  if (word === 'auto') return byDefault;
  if (typeof word === 'string' && choices.includes(word)) return word;
  const supported = [...choices, 'auto'].map((choice) => `'${choice}'`).join(', ');
  throw invalidRequestError(
    400,
    `Invalid value: '${word}'. Supported values are: ${supported}.`,
    name,
    'invalid_value',
  );
}
