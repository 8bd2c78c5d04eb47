/** What a model of fal's is asked for: read, judged, and turned into sizes and numbers. */

import { parseObject, Refusal } from '../../router.ts';
import { isPicture } from '../files/images.ts';
import { wordsAmong } from '../instructions.ts';
import { filmSize, ratioOf } from '../sizes.ts';
import type { FalOffer } from './offers.ts';

export interface FalInput {
  readonly prompt: string;
  /** Where a directive may stand: the prompt, or a picture that is handed over where there is none. */
  readonly words: string;
  /** What was chosen, or what it gets that chose none. */
  readonly fields: Readonly<Record<string, string>>;
  readonly images: number;
  readonly width: number;
  readonly height: number;
  /** Of a video. */
  readonly seconds: number;
  /** Files come within the answer. */
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
const OF_ALL_MODELS = 6;
const MOST_PIXELS_ACROSS = 4_096;
/** Pixels of a side of a square. */
const RESOLUTIONS: Readonly<Record<string, number>> = { '0.5K': 512, '1K': 1_024, '2K': 2_048, '4K': 4_096 };
const MANY_IMAGES = 10;

type Body = Readonly<Record<string, unknown>>;

/** @throws Refusal 422 as fal says it, with the field's place */
export function inputIn(json: string, offer: FalOffer): FalInput {
  const body = parseObject(json);
  if (!body) throw wrong('body', 'Input should be a valid dictionary', 'dict_type', undefined);
  const { required, makes } = offer;
  if (required.includes('prompt')) textIn(body, 'prompt');
  const sources = sourcesIn(body, offer);
  const fields = Object.fromEntries(
    Object.entries(offer.fields).map(([name, words]) => [name, wordIn(body, name, words)]),
  );
  const counts = Object.entries(offer.counts).map(([name, most]) => countIn(body, name, most));
  const [width, height] = makes === 'video' ? filmSize(fields) : pictureSize(body, offer, fields);
  const prompt = typeof body.prompt === 'string' && required.includes('prompt') ? body.prompt : '';
  return {
    prompt,
    words: prompt || sources.join(' '),
    fields,
    images: counts.reduce((product, each) => product * each, 1),
    width,
    height,
    seconds: Number.parseInt(fields.duration ?? '0', 10),
    inline: body.sync_mode === true,
  };
}

/** Pictures that are handed over as data must be some; those at an address are taken on trust. */
function sourcesIn(body: Body, { required }: FalOffer): readonly string[] {
  if (required.includes('image_url')) return [sourceIn(textIn(body, 'image_url'), 'image_url')];
  if (!required.includes('image_urls')) return [];
  const { image_urls: urls } = body;
  if (urls === undefined) throw missing('image_urls');
  if (!Array.isArray(urls)) throw wrong('image_urls', 'Input should be a valid list', 'list_type', urls);
  if (urls.length === 0) throw wrong('image_urls', 'List should have at least 1 item', 'too_short', urls);
  if (urls.length > MANY_IMAGES)
    throw wrong('image_urls', `List should have at most ${MANY_IMAGES} items`, 'too_long', urls);
  return urls.map((url) => sourceIn(String(url), 'image_urls'));
}

function sourceIn(url: string, field: string): string {
  const [, base64] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? [];
  if (base64 === undefined) {
    if (/^https?:\/\//.test(url)) return '';
    throw wrong(field, 'Failed to download the file. Please check the URL.', 'file_download_error', url);
  }
  const bytes = Buffer.from(base64, 'base64');
  if (isPicture(bytes)) return wordsAmong(bytes);
  throw wrong(field, 'Failed to load the image. Please ensure it is valid.', 'image_load_error', undefined);
}

function textIn(body: Body, name: string): string {
  const { [name]: text } = body;
  if (text === undefined) throw missing(name);
  if (typeof text !== 'string') throw wrong(name, 'Input should be a valid string', 'string_type', text);
  if (text === '') throw wrong(name, 'String should have at least 1 character', 'string_too_short', text);
  return text;
}

function wordIn(body: Body, name: string, words: readonly string[]): string {
  const { [name]: chosen = null } = body;
  const [byDefault = ''] = words;
  if (chosen === null) return byDefault;
  if (words.includes('true')) {
    if (typeof chosen === 'boolean') return String(chosen);
    throw wrong(name, 'Input should be a valid boolean', 'bool_type', chosen);
  }
  if (typeof chosen === 'string' && words.includes(chosen)) return chosen;
  const told = words.map((word) => `'${word}'`).join(', ');
  throw wrong(name, `Input should be ${told}`, 'literal_error', chosen);
}

function countIn(body: Body, name: string, most: number): number {
  const { [name]: count = 1 } = body;
  if (typeof count !== 'number' || !Number.isInteger(count))
    throw wrong(name, 'Input should be a valid integer', 'int_type', count);
  if (count < 1) throw wrong(name, 'Input should be greater than or equal to 1', 'greater_than_equal', count);
  if (count > most) throw wrong(name, `Input should be less than or equal to ${most}`, 'less_than_equal', count);
  return count;
}

function pictureSize(body: Body, { imageSize }: FalOffer, fields: FalInput['fields']): readonly [number, number] {
  if (imageSize === undefined) return ratioOf(fields.aspect_ratio, RESOLUTIONS[fields.resolution ?? '1K'] ?? 1_024);
  const { image_size: chosen = imageSize } = body;
  if (typeof chosen === 'string') {
    const names = Object.keys(SIZES).slice(0, imageSize.startsWith('auto') ? undefined : OF_ALL_MODELS);
    const size = SIZES[names.find((name) => name === chosen) ?? ''];
    if (size) return size;
    throw wrong('image_size', `Input should be ${names.join(', ')}`, 'enum', chosen);
  }
  const { width, height } = chosen as { readonly width?: unknown; readonly height?: unknown };
  for (const side of [width, height])
    if (typeof side !== 'number' || !Number.isInteger(side) || side < 1 || side > MOST_PIXELS_ACROSS)
      throw wrong('image_size', `Input should be from 1 to ${MOST_PIXELS_ACROSS}`, 'less_than_equal', chosen);
  return [width as number, height as number];
}

function missing(field: string): Refusal {
  return wrong(field, 'Field required', 'missing', undefined);
}

export function wrong(field: string, msg: string, type: string, input: unknown): Refusal {
  const loc = field === 'body' ? ['body'] : ['body', field];
  const url = `https://docs.fal.ai/errors#${type}`;
  return new Refusal(422, { detail: [{ loc, msg, type, url, input }] }, { 'x-fal-retryable': 'false' });
}
