/**
 * Validates the content parts of messages. A part is accepted only if the model supports it and a quote can cover its
 * usage. A provider could fetch, store or convert other parts and invoice more.
 */

import type { TokenPricedModel } from '#catalogue';
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';

import type { ChatBody } from './chat-body.ts';

/** Types of content parts, and the input that a model must support for them, as the catalogue names it. */
const INPUT_BY_PART_TYPE: ReadonlyMap<unknown, string> = new Map([
  ['text', 'text'],
  ['refusal', 'text'],
  ['image_url', 'image'],
  ['file', 'file'],
  ['input_audio', 'audio'],
  ['video_url', 'video'],
]);

/**
 * Rejects content parts that the catalogue does not list as an input of the model, and images outside the content, as
 * other APIs have them: no provider gets those, so the model would respond without having seen them. A router would
 * convert them for a fee, for example a PDF by OCR at a price per page.
 * @throws InvalidRequestError (400) naming the content part
 */
export function assertSupportedContent({ messages }: ChatBody, model: Pick<TokenPricedModel, 'id' | 'inputs'>): void {
  for (const [i, message] of messages.entries()) {
    const { content } = message;
    // Reading a missing field takes several times as long as to check whether there is one.
    if (Object.hasOwn(message, 'images') && Array.isArray(message.images) && message.images.length > 0)
      throw invalidContent('Images must be content parts of the type "image_url"', `messages[${i}].images`);
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
    throw invalidContent(`The model "${id}" accepts ${inputs.join(', ')}, but not ${input}`, `${path}.type`);
  if (type === 'file') assertFile(isJsonObject(file) ? file : {}, `${path}.file`);
  if (type === 'image_url') assertImage(isJsonObject(image_url) ? image_url.url : image_url, `${path}.image_url`);
}

/** A file given by id or URL has an unknown size, and one given by id may belong to another customer. */
function assertFile(file: JsonObject, path: string): void {
  for (const name of ['file_id', 'file_url'])
    if ((file[name] ?? null) !== null)
      throw invalidContent('Files by id or URL are not supported; send file_data', `${path}.${name}`);
  if (typeof file.file_data !== 'string')
    throw invalidContent(`${path}.file_data must be a data URL`, `${path}.file_data`);
}

/** A data URL must have an image type: a document in place of an image could have many times the tokens. */
function assertImage(url: unknown, path: string): void {
  if (typeof url === 'string' && (/^https?:\/\//i.test(url) || /^data:image\//i.test(url))) return;
  throw invalidContent(`${path}.url must be an HTTP(S) URL or a data URL of an image`, `${path}.url`);
}

function invalidContent(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}
