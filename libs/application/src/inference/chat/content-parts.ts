/**
 * What messages consist of: the parts that a quote has a bound for, and that the model takes. Whatever else there is, a vendor
 * would fetch, keep or convert it, and invoice what nobody has counted.
 */

import type { TokenPricedModel } from '#catalogue';
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';

import type { ChatBody } from './chat-body.ts';

/** The types of parts, and what a model must take for them, as the catalogue calls it. */
const INPUT_BY_PART_TYPE: ReadonlyMap<unknown, string> = new Map([
  ['text', 'text'],
  ['refusal', 'text'],
  ['image_url', 'image'],
  ['file', 'file'],
  ['input_audio', 'audio'],
  ['video_url', 'video'],
]);

/**
 * A router converts what a model does not take by itself, such as a PDF by OCR at a price for each page, so that only what
 * the model is listed with goes out.
 * @throws InvalidRequestError 400 that names the part
 */
export function assertSupportedContent({ messages }: ChatBody, model: Pick<TokenPricedModel, 'id' | 'inputs'>): void {
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, part] of content.entries())
      if (part?.type !== 'text') assertSupportedPart(part, model, `messages[${i}].content[${j}]`);
  }
}

function assertSupportedPart(
  part: unknown,
  { id, inputs }: Pick<TokenPricedModel, 'id' | 'inputs'>,
  path: string,
): void {
  const { type, file, image_url } = isJsonObject(part) ? part : {};
  const input = INPUT_BY_PART_TYPE.get(type);
  if (input === undefined) {
    const name = type ?? (isJsonObject(part) ? Object.keys(part)[0] : undefined) ?? null;
    throw invalidContent(`Content parts of the type "${String(name).slice(0, 64)}" are not supported`, `${path}.type`);
  }
  if (input !== 'text' && !inputs.includes(input))
    throw invalidContent(`The model "${id}" takes ${inputs.join(', ')}, and no ${input}`, `${path}.type`);
  if (type === 'file') assertFile(isJsonObject(file) ? file : {}, `${path}.file`);
  if (type === 'image_url') assertImage(isJsonObject(image_url) ? image_url.url : image_url, `${path}.image_url`);
}

/** By its id or address nobody knows how long it is, and by its id not even whose. */
function assertFile(file: JsonObject, path: string): void {
  for (const name of ['file_id', 'file_url'])
    if ((file[name] ?? null) !== null)
      throw invalidContent('Files by id or address are not supported: send file_data', `${path}.${name}`);
  if (typeof file.file_data !== 'string')
    throw invalidContent(`${path}.file_data must be a data URL`, `${path}.file_data`);
}

/** What is in the request is an image by what it says of itself: a document in its place would have many times its tokens. */
function assertImage(url: unknown, path: string): void {
  if (typeof url === 'string' && (/^https?:\/\//i.test(url) || /^data:image\//i.test(url))) return;
  throw invalidContent(`${path}.url must be an address or a data URL of an image`, `${path}.url`);
}

function invalidContent(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}
