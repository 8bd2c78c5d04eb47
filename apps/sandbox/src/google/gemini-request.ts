/** What a model that draws is asked for, read as strictly as Google reads it. */
import { isPicture } from '../media/files/images.ts';
import { parseObject } from '../router.ts';
import { refusal, unknownName } from './errors.ts';
import type { ImageOffer } from './google-offers.ts';

type Fields = Readonly<Record<string, unknown>>;

export interface DrawingRequest {
  /** All texts that were said. */
  readonly text: string;
  readonly images: number;
  readonly size: string;
  readonly ratio: string;
  /** Whether it is to say something as well. */
  readonly speaks: boolean;
}

const NAMES = ['contents', 'generationConfig', 'safetySettings', 'systemInstruction', 'tools', 'toolConfig'];
const CONFIG = [
  ...['responseModalities', 'imageConfig', 'candidateCount', 'temperature', 'topP', 'topK', 'seed'],
  ...['maxOutputTokens', 'stopSequences', 'thinkingConfig'],
];
const IMAGE_CONFIG = ['aspectRatio', 'imageSize', 'personGeneration'];
const MODALITIES = ['TEXT', 'IMAGE'];

/** @throws Refusal 400 */
export function drawingIn(json: string, { tokens, ratios }: ImageOffer): DrawingRequest {
  const body = fieldsIn(parseObject(json), '', NAMES);
  const config = fieldsIn(body.generationConfig, 'generation_config', CONFIG);
  const drawing = fieldsIn(config.imageConfig, 'generation_config.image_config', IMAGE_CONFIG);
  const { responseModalities: modalities = MODALITIES, candidateCount = 1 } = config;
  if (
    !Array.isArray(modalities) ||
    !modalities.every((each) => MODALITIES.includes(each)) ||
    !modalities.includes('IMAGE')
  )
    throw refusal(400, 'The requested combination of response modalities is not supported by the model.');
  if (candidateCount !== 1) throw refusal(400, 'Multiple candidates is not enabled for this model');
  const parts = partsIn(body.contents);
  const text = parts.map((part) => (typeof part.text === 'string' ? part.text : '')).join('\n');
  return {
    text,
    images: parts.filter((part) => hasPicture(part)).length,
    size: wordIn(drawing.imageSize, Object.hasOwn(tokens, '1K') ? '1K' : '', Object.keys(tokens), 'image_size'),
    ratio: wordIn(drawing.aspectRatio, '1:1', ratios, 'aspect_ratio'),
    speaks: modalities.includes('TEXT'),
  };
}

function fieldsIn(value: unknown, place: string, names: readonly string[]): Fields {
  if (value === undefined && place !== '') return {};
  if (typeof value !== 'object' || value === null)
    throw refusal(
      400,
      place === '' ? 'Invalid JSON payload received. Expected an object.' : `Invalid value at '${place}'`,
    );
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) throw unknownName(unknown, place);
  return value as Fields;
}

function partsIn(contents: unknown): readonly Fields[] {
  const all = Array.isArray(contents) ? contents : [];
  const parts = all.flatMap((each) => (Array.isArray(each?.parts) ? (each.parts as Fields[]) : []));
  if (parts.length > 0) return parts;
  throw refusal(400, '* GenerateContentRequest.contents: contents is not specified');
}

function hasPicture({ inlineData }: Fields): boolean {
  if (inlineData === undefined) return false;
  const { mimeType, data } = (inlineData ?? {}) as Fields;
  if (!/^image\/(png|jpeg|webp|heic|heif)$/.test(String(mimeType)))
    throw refusal(400, `Unsupported MIME type: ${mimeType}`);
  if (typeof data === 'string' && isPicture(Buffer.from(data, 'base64'))) return true;
  throw refusal(
    400,
    'Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
  );
}

function wordIn(word: unknown, byDefault: string, words: readonly string[], place: string): string {
  if (word === undefined) return byDefault;
  if (typeof word === 'string' && words.includes(word)) return word;
  throw refusal(
    400,
    `Invalid value at 'generation_config.image_config.${place}': ${JSON.stringify(word)}. Supported are ${words.join(', ')}.`,
  );
}
