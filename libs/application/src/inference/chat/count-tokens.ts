/**
 * Counts the tokens of a request: a fast upper bound before the call, and an estimate after a call whose provider did
 * not report usage.
 */

import type { TokenPricedModel } from '#catalogue';
import { isJsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';
import type { CountText } from '../../tokens/token-counter.ts';
import { countMaxAsciiTokens, countMaxTextTokens } from '../../tokens/tokenizer.ts';

import type { ChatBody } from './chat-body.ts';
import { countMaxAudioTokens } from './max-audio-tokens.ts';
import { MAX_TOKENS_PER_IMAGE } from './max-image-tokens.ts';

/** Maximum tokens that chat formats add per message and per request. */
const TOKENS_PER_MESSAGE = 8;
const TOKENS_PER_REQUEST = 16;
/** Typical count of an image at full detail. */
const TYPICAL_TOKENS_PER_IMAGE = 2_000;
/** Attachments other than images are counted by size, unless their format can have more tokens. */
const BASE64_CHARACTERS_PER_TOKEN = 4;
/**
 * A PDF is read as text and as images of its pages, and a page may have only a few bytes. Providers accept at most 100
 * pages and state 3,000 tokens for a dense page.
 */
export const MAX_TOKENS_PER_PDF = 300_000;
/** The fewest tokens that the bound of a text has: 0.75 per byte, and 0.75 bytes per character in base64. */
const MIN_TOKENS_PER_FILE_CHARACTER = 0.75 * 0.75;
/** Types of attachments that are counted by size. */
const ATTACHMENT_TYPES: ReadonlySet<unknown> = new Set(['file', 'input_audio', 'video_url']);
const TEXT_DATA = /^data:(text|application\/json)\b/;
/** Length of the start of a file in which the signature of its format is expected. */
const HEAD_CHARACTERS = 1_024;
const PDF_DATA = /^data:application\/pdf\b/;
/** Maximum characters that an estimate counts with the tokenizer, which limits the work of requests that are free. */
const ESTIMATED_CHARACTERS = 200_000;
/** Between the texts of a request when they are counted. */
const SEPARATOR = '\n';
/** Maximum nesting of a request: deeper than any schema in use, and far below what would overflow the stack. */
const MAX_DEPTH = 100;

/**
 * Returns an upper bound of the input tokens of a request, from the number of characters and of the additional bytes of
 * characters outside ASCII. Specs compare the bound with a tokenizer.
 * @param model with `imageTokens` if it counts an image as more than 5,000 tokens
 * @returns a number from `context` on that may be below the bound if the request fills the context by its characters
 * alone; infinity if a part has no bound, such as a video, or if a text file fills the context with what precedes it
 * @throws InvalidRequestError (400) if the request is nested too deeply
 */
export function countMaxChatInputTokens(
  body: ChatBody,
  { imageTokens = MAX_TOKENS_PER_IMAGE, context = Number.POSITIVE_INFINITY }: CountedModel = {},
): number {
  const { messages, tools, response_format } = body;
  let total = TOKENS_PER_REQUEST;
  for (const value of [tools, response_format]) total += countMaxValueTokens(value, 0, context);
  for (const message of messages)
    total += TOKENS_PER_MESSAGE + countMaxMessageTokens(message, imageTokens, context - total);
  return Math.ceil(total);
}

type CountedModel = Partial<Pick<TokenPricedModel, 'imageTokens' | 'context'>>;

/** Only content parts can be attachments. Any other field is counted as text, even with the `type` of an attachment. */
function countMaxMessageTokens(message: Part, imageTokens: number, remainingTokens: number): number {
  let total = 0;
  for (const name in message) {
    const value = message[name];
    total += countMaxTextTokens(name);
    if (name !== 'content' || !Array.isArray(value)) total += countMaxValueTokens(value, 2, remainingTokens);
    else
      for (const part of value)
        total +=
          countMaxAttachmentTokens(part, imageTokens, remainingTokens - total) ??
          countMaxValueTokens(part, 3, remainingTokens);
  }
  return total;
}

/**
 * Returns the maximum tokens of the texts and names in a value, without those of its punctuation.
 * @param sufficientTokens the result may be below the maximum if it is not below this number
 * @throws InvalidRequestError (400) if it is nested too deeply
 */
export function countMaxValueTokens(value: unknown, depth = 0, sufficientTokens = Number.POSITIVE_INFINITY): number {
  if (typeof value === 'string') return countMaxTextTokens(value, sufficientTokens);
  if (typeof value === 'number') return countMaxAsciiTokens(String(value).length);
  if (typeof value !== 'object' || value === null) return 1;
  if (depth > MAX_DEPTH) throw new InvalidRequestError(400, 'The request is nested too deeply');
  let total = 1;
  if (Array.isArray(value)) for (const item of value) total += countMaxValueTokens(item, depth + 1, sufficientTokens);
  else
    for (const name in value)
      total += countMaxTextTokens(name) + countMaxValueTokens((value as Part)[name], depth + 1, sufficientTokens);
  return total;
}

type Part = Readonly<Record<string, unknown>>;

/** Returns the maximum tokens of an attachment; undefined for any other content part. */
function countMaxAttachmentTokens(part: Part | null, imageTokens: number, remainingTokens: number): number | undefined {
  const size = estimateTokensBySize(part, imageTokens);
  return size === undefined ? undefined : Math.max(size, countMaxHiddenTokens(part as Part, remainingTokens));
}

/** Returns `imageTokens` for an image, and the tokens of other attachments by their size; undefined for other parts. */
function estimateTokensBySize(part: Part | null, imageTokens: number): number | undefined {
  const type = part?.type;
  if (type === 'image_url' || type === 'input_image') return imageTokens;
  if (ATTACHMENT_TYPES.has(type)) return countCharacters(part) / BASE64_CHARACTERS_PER_TOKEN;
  return undefined;
}

/** Counts the characters of names and values without serialising them: an attachment may have 24 MB. */
function countCharacters(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 1;
  let total = 0;
  for (const [name, member] of Object.entries(value)) total += name.length + countCharacters(member);
  return total;
}

/** Returns the maximum tokens of a file or audio by its format; infinity for a video and 0 for an image. */
function countMaxHiddenTokens({ type, file, input_audio }: Part, remainingTokens: number): number {
  if (type === 'input_audio') return countMaxAudioTokens(isJsonObject(input_audio) ? input_audio.data : undefined);
  if (type === 'file') {
    const { file_data, file_url } = isJsonObject(file) ? file : {};
    // A file by URL is fetched later, and rejected if it could have more tokens.
    if (typeof file_url === 'string' && typeof file_data !== 'string') return MAX_TOKENS_PER_PDF;
    return countMaxFileTokens(file_data, remainingTokens);
  }
  return type === 'video_url' ? Number.POSITIVE_INFINITY : 0;
}

/**
 * Only PDFs have a bound, and files that are declared as text or JSON and are not in another format. Other files may be
 * source code with one token per character, or compressed spreadsheets. A text that fills the context is not decoded.
 */
export function countMaxFileTokens(data: unknown, remainingTokens: number): number {
  if (typeof data !== 'string') return Number.POSITIVE_INFINITY;
  if (PDF_DATA.test(data)) return MAX_TOKENS_PER_PDF;
  if (data.length * MIN_TOKENS_PER_FILE_CHARACTER > remainingTokens) return Number.POSITIVE_INFINITY;
  const text = TEXT_DATA.test(data) ? decodeText(data) : undefined;
  return text === undefined || isDisguised(text) ? Number.POSITIVE_INFINITY : countMaxTextTokens(text);
}

/** Detects PDF and binary data declared as text: providers also detect a format by the file name or content. */
function isDisguised(text: string): boolean {
  const head = text.slice(0, HEAD_CHARACTERS);
  return head.includes('%PDF-') || /\p{Cc}/u.test(head.replace(/\s/g, ''));
}

function decodeText(data: string): string {
  const start = data.indexOf(',') + 1;
  return data.slice(0, start).includes('base64') ? Buffer.from(data.slice(start), 'base64').toString('utf8') : data;
}

/** Counts the input tokens of a request with a tokenizer. An image counts as 2,000, other attachments by their size. */
export async function countInputTokens(body: ChatBody, countText: CountText): Promise<number> {
  const { texts, otherTokens } = collectInputText(body);
  return otherTokens + (await countText(joinTexts(texts)));
}

/**
 * Like `countInputTokens`, but counts only the first 200,000 characters and extrapolates. This limits the work of
 * requests that are free.
 */
export async function estimateInputTokens(body: ChatBody, countText: CountText): Promise<number> {
  const { texts, otherTokens } = collectInputText(body);
  const characters = texts.reduce((total, text) => total + SEPARATOR.length + text.length, -SEPARATOR.length);
  const countedTokens = await countText(joinTexts(texts, ESTIMATED_CHARACTERS));
  return otherTokens + Math.ceil(countedTokens * Math.max(characters / ESTIMATED_CHARACTERS, 1));
}

/** Joins the texts of a request, up to `maxCharacters`: joining all texts of a large body takes up to 20 ms. */
export function joinTexts(texts: readonly string[], maxCharacters = Number.POSITIVE_INFINITY): string {
  const start: string[] = [];
  let remainingCharacters = maxCharacters;
  for (const text of texts) {
    if (remainingCharacters <= 0) break;
    start.push(text.slice(0, remainingCharacters));
    remainingCharacters -= text.length + SEPARATOR.length;
  }
  return start.join(SEPARATOR);
}

export interface InputText {
  readonly texts: readonly string[];
  readonly otherTokens: number;
}

/** Returns the texts of the messages and tools, and the typical tokens of the attachments and the message format. */
export function collectInputText({ messages, tools }: Pick<ChatBody, 'messages' | 'tools'>): InputText {
  let attached = 0;
  const texts: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value);
    else if (Array.isArray(value)) value.forEach(collect);
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect);
  };
  for (const { content, ...message } of messages) {
    collect(message);
    for (const part of Array.isArray(content) ? content : [content]) {
      const size = estimateTokensBySize(part, TYPICAL_TOKENS_PER_IMAGE);
      if (size === undefined) collect(part);
      else attached += size;
    }
  }
  if (tools) texts.push(JSON.stringify(tools));
  return { texts, otherTokens: Math.ceil(attached) + messages.length * 4 };
}
