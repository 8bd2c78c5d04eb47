/** Parses and validates a request for an image model as Google does. */
import { type JsonObject } from '#kernel';
import { isImage } from '../media/files/images.ts';
import { parseObject } from '../router.ts';
import { createError } from './errors.ts';
import { parseFields } from './fields.ts';
import type { ImageOffer } from './google-offers.ts';

export interface GeminiImageRequest {
  /** The texts of all parts. */
  readonly text: string;
  readonly images: number;
  readonly size: string;
  readonly ratio: string;
  /** Whether text is generated in addition to the image, as it is by default. */
  readonly includesText: boolean;
}

const NAMES = ['contents', 'generationConfig', 'safetySettings', 'systemInstruction', 'tools', 'toolConfig'];
const CONFIG = [
  'responseModalities',
  'imageConfig',
  'candidateCount',
  'temperature',
  'topP',
  'topK',
  'seed',
  'maxOutputTokens',
  'stopSequences',
  'thinkingConfig',
];
const IMAGE_CONFIG = ['aspectRatio', 'imageSize', 'personGeneration'];
const MODALITIES = ['TEXT', 'IMAGE'];

/** @throws HttpError 400 */
export function parseImageRequest(json: string, { tokens, ratios }: ImageOffer): GeminiImageRequest {
  const body = parseFields(parseObject(json), '', NAMES);
  const config = parseFields(body.generationConfig, 'generation_config', CONFIG);
  const drawing = parseFields(config.imageConfig, 'generation_config.image_config', IMAGE_CONFIG);
  const { responseModalities: modalities = MODALITIES, candidateCount = 1 } = config;
  if (
    !Array.isArray(modalities) ||
    !modalities.every((modality) => MODALITIES.includes(modality)) ||
    !modalities.includes('IMAGE')
  )
    throw createError(400, 'The requested combination of response modalities is not supported by the model.');
  if (candidateCount !== 1) throw createError(400, 'Multiple candidates is not enabled for this model');
  const parts = parseParts(body.contents);
  const text = parts.map((part) => (typeof part.text === 'string' ? part.text : '')).join('\n');
  return {
    text,
    images: parts.filter((part) => hasImage(part)).length,
    size: parseChoice(drawing.imageSize, Object.hasOwn(tokens, '1K') ? '1K' : '', Object.keys(tokens), 'image_size'),
    ratio: parseChoice(drawing.aspectRatio, '1:1', ratios, 'aspect_ratio'),
    includesText: modalities.includes('TEXT'),
  };
}

function parseParts(contents: unknown): readonly JsonObject[] {
  const all = Array.isArray(contents) ? contents : [];
  const parts = all.flatMap((content) => (Array.isArray(content?.parts) ? (content.parts as JsonObject[]) : []));
  if (parts.length > 0) return parts;
  throw createError(400, '* GenerateContentRequest.contents: contents is not specified');
}

function hasImage({ inlineData }: JsonObject): boolean {
  if (inlineData === undefined) return false;
  const { mimeType, data } = (inlineData ?? {}) as JsonObject;
  if (!/^image\/(png|jpeg|webp|heic|heif)$/.test(String(mimeType)))
    throw createError(400, `Unsupported MIME type: ${mimeType}`);
  if (typeof data === 'string' && isImage(Buffer.from(data, 'base64'))) return true;
  throw createError(
    400,
    'Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
  );
}

function parseChoice(value: unknown, byDefault: string, choices: readonly string[], field: string): string {
  if (value === undefined) return byDefault;
  if (typeof value === 'string' && choices.includes(value)) return value;
  throw createError(
    400,
    `Invalid value at 'generation_config.image_config.${field}': ${JSON.stringify(value)}. Supported are ${choices.join(', ')}.`,
  );
}
