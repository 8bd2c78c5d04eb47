/**
 * Validates the content parts of messages. A part is accepted only if the model supports it and a quote can cover its
 * usage. A provider could fetch, store or convert other parts and invoice more.
 */

import type { TokenPricedModel } from '#catalogue';
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';

import type { ChatBody } from './chat-body.ts';

/** Maximum number of files by URL in a request, including the conversation that it continues. */
const MAX_FILE_URLS = 5;

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
  let fileUrls = 0;
  for (const [i, message] of messages.entries()) {
    const { content } = message;
    // Reading a missing field takes several times as long as to check whether there is one.
    if (Object.hasOwn(message, 'images') && Array.isArray(message.images) && message.images.length > 0)
      throw invalidContent('Images must be content parts of the type "image_url"', `messages[${i}].images`);
    if (!Array.isArray(content)) continue;
    for (const [j, part] of content.entries()) {
      if (part?.type === 'text') continue;
      assertSupportedPart(part, model, `messages[${i}].content[${j}]`);
      if (getFileUrl(part) !== undefined && ++fileUrls > MAX_FILE_URLS)
        throw invalidContent(
          `A request must have at most ${MAX_FILE_URLS} files by URL`,
          `messages[${i}].content[${j}]`,
        );
    }
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

/** A file given by id may belong to another customer. */
function assertFile({ file_id, file_data, file_url }: JsonObject, path: string): void {
  if ((file_id ?? null) !== null)
    throw invalidContent('Files by id are not supported; send file_data or file_url', `${path}.file_id`);
  if (typeof file_data === 'string' && (file_url ?? null) === null) return;
  if ((file_url ?? null) === null) throw invalidContent(`${path}.file_data must be a data URL`, `${path}.file_data`);
  if (typeof file_url !== 'string' || (file_data ?? null) !== null || !/^https?:\/\//i.test(file_url))
    throw invalidContent(`${path}.file_url must be an HTTP(S) URL without file_data`, `${path}.file_url`);
  if (!URL.canParse(file_url)) throw invalidContent(`${path}.file_url must be a valid URL`, `${path}.file_url`);
}

/** A data URL must have an image type: a document in place of an image could have many times the tokens. */
function assertImage(url: unknown, path: string): void {
  if (typeof url === 'string' && (/^https?:\/\//i.test(url) || /^data:image\//i.test(url))) return;
  throw invalidContent(`${path}.url must be an HTTP(S) URL or a data URL of an image`, `${path}.url`);
}

function invalidContent(message: string, param: string): InvalidRequestError {
  return new InvalidRequestError(400, message, param);
}

/** Returns the URL of a file part in the format of chats or of Responses; undefined for any other part. */
export function getFileUrl(part: unknown): string | undefined {
  if (!isJsonObject(part) || (part.type !== 'file' && part.type !== 'input_file')) return undefined;
  const { file_url, file_data } = isJsonObject(part.file) ? part.file : part;
  return typeof file_url === 'string' && typeof file_data !== 'string' ? file_url : undefined;
}
