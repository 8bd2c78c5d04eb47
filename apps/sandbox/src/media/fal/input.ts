/** Parses and validates the input of a fal model. */

import { HttpError, parseObject } from '../../router.ts';
import { findDirectiveText } from '../directive-runner.ts';
import { isImage } from '../files/images.ts';
import { getImageSize, getVideoSize } from '../sizes.ts';
import type { FalOffer } from './offers.ts';

export interface FalInput {
  readonly prompt: string;
  /** Text that may have a directive: the prompt; without a prompt, text from images that are sent as data. */
  readonly directiveText: string;
  /** The selected or default values. */
  readonly fields: Readonly<Record<string, string>>;
  readonly images: number;
  readonly width: number;
  readonly height: number;
  /** Length of a video. */
  readonly seconds: number;
  /** Files are part of the response instead of URLs. */
  readonly inline: boolean;
}

const SIZES: Readonly<Record<string, readonly [number, number]>> = {
  square_hd: [1_024, 1_024],
  square: [512, 512],
  portrait_4_3: [768, 1_024],
  portrait_16_9: [576, 1_024],
  landscape_4_3: [1_024, 768],
  landscape_16_9: [1_024, 576],
  auto_2K: [2_048, 2_048],
  auto_4K: [4_096, 4_096],
};
const COMMON_SIZE_COUNT = 6;
const MAX_PIXELS_ACROSS = 4_096;
/** Pixels of a side of a square. */
const RESOLUTIONS: Readonly<Record<string, number>> = { '0.5K': 512, '1K': 1_024, '2K': 2_048, '4K': 4_096 };
const MAX_SOURCE_IMAGES = 10;

type Body = Readonly<Record<string, unknown>>;

/** @throws HttpError 422 in fal's format, with the location of the field */
export function parseInput(json: string, falOffer: FalOffer): FalInput {
  const body = parseObject(json);
  if (!body) throw invalidFieldError('body', 'Input should be a valid dictionary', 'dict_type', undefined);
  const { required, output } = falOffer;
  if (required.includes('prompt')) parseText(body, 'prompt');
  const sources = parseSources(body, falOffer);
  const fields = Object.fromEntries(
    Object.entries(falOffer.fields).map(([name, choices]) => [name, parseChoice(body, name, choices)]),
  );
  const counts = Object.entries(falOffer.counts).map(([name, max]) => parseCount(body, name, max));
  const [width, height] = output === 'video' ? getVideoSize(fields) : parseImageSize(body, falOffer, fields);
  const prompt = typeof body.prompt === 'string' && required.includes('prompt') ? body.prompt : '';
  return {
    prompt,
    directiveText: prompt || sources.join(' '),
    fields,
    images: counts.reduce((product, count) => product * count, 1),
    width,
    height,
    seconds: Number.parseInt(fields.duration ?? '0', 10),
    inline: body.sync_mode === true,
  };
}

/** Validates the images and returns their texts from the directives on. The text is empty for an image at a URL. */
function parseSources(body: Body, { required }: FalOffer): readonly string[] {
  if (required.includes('image_url')) return [parseSource(parseText(body, 'image_url'), 'image_url')];
  if (!required.includes('image_urls')) return [];
  const { image_urls: urls } = body;
  if (urls === undefined) throw missingFieldError('image_urls');
  if (!Array.isArray(urls)) throw invalidFieldError('image_urls', 'Input should be a valid list', 'list_type', urls);
  if (urls.length === 0) throw invalidFieldError('image_urls', 'List should have at least 1 item', 'too_short', urls);
  if (urls.length > MAX_SOURCE_IMAGES)
    throw invalidFieldError('image_urls', `List should have at most ${MAX_SOURCE_IMAGES} items`, 'too_long', urls);
  return urls.map((url) => parseSource(String(url), 'image_urls'));
}

function parseSource(url: string, field: string): string {
  const [, base64] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? [];
  if (base64 === undefined) {
    if (/^https?:\/\//.test(url)) return '';
    throw invalidFieldError(field, 'Failed to download the file. Please check the URL.', 'file_download_error', url);
  }
  const bytes = Buffer.from(base64, 'base64');
  if (isImage(bytes)) return findDirectiveText(bytes);
  throw invalidFieldError(field, 'Failed to load the image. Please ensure it is valid.', 'image_load_error', undefined);
}

function parseText(body: Body, name: string): string {
  const { [name]: text } = body;
  if (text === undefined) throw missingFieldError(name);
  if (typeof text !== 'string') throw invalidFieldError(name, 'Input should be a valid string', 'string_type', text);
  if (text === '') throw invalidFieldError(name, 'String should have at least 1 character', 'string_too_short', text);
  return text;
}

function parseChoice(body: Body, name: string, choices: readonly string[]): string {
  const { [name]: chosen = null } = body;
  const [byDefault = ''] = choices;
  if (chosen === null) return byDefault;
  if (choices.includes('true')) {
    if (typeof chosen === 'boolean') return String(chosen);
    throw invalidFieldError(name, 'Input should be a valid boolean', 'bool_type', chosen);
  }
  if (typeof chosen === 'string' && choices.includes(chosen)) return chosen;
  const expected = choices.map((word) => `'${word}'`).join(', ');
  throw invalidFieldError(name, `Input should be ${expected}`, 'literal_error', chosen);
}

function parseCount(body: Body, name: string, max: number): number {
  const { [name]: count = 1 } = body;
  if (typeof count !== 'number' || !Number.isInteger(count))
    throw invalidFieldError(name, 'Input should be a valid integer', 'int_type', count);
  if (count < 1)
    throw invalidFieldError(name, 'Input should be greater than or equal to 1', 'greater_than_equal', count);
  if (count > max)
    throw invalidFieldError(name, `Input should be less than or equal to ${max}`, 'less_than_equal', count);
  return count;
}

function parseImageSize(body: Body, { imageSize }: FalOffer, fields: FalInput['fields']): readonly [number, number] {
  if (imageSize === undefined)
    return getImageSize(fields.aspect_ratio, RESOLUTIONS[fields.resolution ?? '1K'] ?? 1_024);
  const { image_size: chosen = imageSize } = body;
  if (typeof chosen === 'string') {
    const names = Object.keys(SIZES).slice(0, imageSize.startsWith('auto') ? undefined : COMMON_SIZE_COUNT);
    const size = SIZES[names.find((name) => name === chosen) ?? ''];
    if (size) return size;
    throw invalidFieldError('image_size', `Input should be ${names.join(', ')}`, 'enum', chosen);
  }
  const { width, height } = chosen as { readonly width?: unknown; readonly height?: unknown };
  for (const side of [width, height])
    if (typeof side !== 'number' || !Number.isInteger(side) || side < 1 || side > MAX_PIXELS_ACROSS)
      throw invalidFieldError(
        'image_size',
        `Input should be from 1 to ${MAX_PIXELS_ACROSS}`,
        'less_than_equal',
        chosen,
      );
  return [width as number, height as number];
}

function missingFieldError(field: string): HttpError {
  return invalidFieldError(field, 'Field required', 'missing', undefined);
}

export function invalidFieldError(field: string, msg: string, type: string, input: unknown): HttpError {
  const loc = field === 'body' ? ['body'] : ['body', field];
  const url = `https://docs.fal.ai/errors#${type}`;
  return new HttpError(422, { detail: [{ loc, msg, type, url, input }] }, { 'x-fal-retryable': 'false' });
}
