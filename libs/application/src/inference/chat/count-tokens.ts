/** How many tokens a request has: a cheap upper bound before the call, and a count when no upstream reports one. */

import type { TokenPricedModel } from '#catalogue';
import { isJsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';
import { countMaxTextTokens, splitForTokenizer, splitForTokenizerAsync } from '../../tokenizer.ts';

import type { ChatBody } from './chat-body.ts';
import { countMaxAudioTokens } from './max-audio-tokens.ts';

/** Tokens that chat formats add per message and per request. */
const TOKENS_PER_MESSAGE = 8;
const TOKENS_PER_REQUEST = 16;
/** Upper bound for an image at full detail, over the vendors; those that count more say so in the catalogue. */
const MAX_TOKENS_PER_IMAGE = 5_000;
/** What most vendors count an image at full detail as. */
const TYPICAL_TOKENS_PER_IMAGE = 2_000;
/** Attached files and audio are counted by size: no vendor makes more than a token of four base64 characters. */
const BASE64_CHARACTERS_PER_TOKEN = 4;
/**
 * A PDF is read as text and as pictures of its pages, and a page may be a few bytes: vendors take 100 pages, and name
 * 3,000 tokens for a dense one.
 */
const MAX_TOKENS_PER_PDF = 300_000;
/** Parts that are counted by their size, as far as that says anything. */
const ATTACHMENT_TYPES: ReadonlySet<unknown> = new Set(['file', 'input_audio', 'video_url']);
const TEXT_DATA = /^data:(text|application\/json)\b/;
/** Within which a file says what it is. */
const HEAD_CHARACTERS = 1_024;
const PDF_DATA = /^data:application\/pdf\b/;
/** Takes some ten milliseconds to count. */
const ESTIMATED_CHARACTERS = 200_000;
/** Deeper than any schema in use, and far from what overflows a stack. */
const MAX_DEPTH = 100;

/**
 * An upper bound, in practice, of the input tokens of a request, without a tokenizer: by characters, and for those
 * outside ASCII also by the bytes they take more. Infinite where a part is somewhere else: as much as the context takes.
 * @param model what it counts an image as, where that is more than usual
 * @throws InvalidRequestError when it is nested too deeply
 */
export function countMaxChatInputTokens(
  body: ChatBody,
  { imageTokens = MAX_TOKENS_PER_IMAGE }: Pick<TokenPricedModel, 'imageTokens'> = {},
): number {
  const { messages, tools, response_format } = body;
  let total = TOKENS_PER_REQUEST + countMaxValueTokens(tools) + countMaxValueTokens(response_format);
  for (const message of messages) total += TOKENS_PER_MESSAGE + countMaxMessageTokens(message, imageTokens);
  return Math.ceil(total);
}

/** Only content parts are attachments, whatever other fields claim. */
function countMaxMessageTokens(message: Part, imageTokens: number): number {
  let total = 0;
  for (const [name, value] of Object.entries(message)) {
    total += countMaxTextTokens(name);
    if (name !== 'content' || !Array.isArray(value)) total += countMaxValueTokens(value, 2);
    else for (const part of value) total += countMaxAttachmentTokens(part, imageTokens) ?? countMaxValueTokens(part, 3);
  }
  return total;
}

function countMaxValueTokens(value: unknown, depth = 0): number {
  if (typeof value === 'string') return countMaxTextTokens(value);
  if (typeof value === 'number') return countMaxTextTokens(String(value));
  if (typeof value !== 'object' || value === null) return 1;
  if (depth > MAX_DEPTH) throw new InvalidRequestError(400, 'The request is nested too deeply');
  let total = 1;
  if (Array.isArray(value)) for (const item of value) total += countMaxValueTokens(item, depth + 1);
  else
    for (const [name, member] of Object.entries(value))
      total += countMaxTextTokens(name) + countMaxValueTokens(member, depth + 1);
  return total;
}

type Part = Readonly<Record<string, unknown>>;

/** Tokens of a content part that is not text, at most; undefined for one that is. */
function countMaxAttachmentTokens(part: Part | null, imageTokens: number): number | undefined {
  const size = estimateTokensBySize(part, imageTokens);
  return size === undefined ? undefined : Math.max(size, countMaxHiddenTokens(part as Part));
}

/** Tokens of a content part that is not text, by its size. */
function estimateTokensBySize(part: Part | null, imageTokens: number): number | undefined {
  const type = part?.type;
  if (type === 'image_url' || type === 'input_image') return imageTokens;
  if (ATTACHMENT_TYPES.has(type)) return JSON.stringify(part).length / BASE64_CHARACTERS_PER_TOKEN;
  return undefined;
}

/** Tokens that a content part may have whatever its size: what is fetched, and a film, may fill the context. */
function countMaxHiddenTokens({ type, file, input_audio }: Part): number {
  if (type === 'input_audio') return countMaxAudioTokens(isJsonObject(input_audio) ? input_audio.data : undefined);
  if (type === 'file') return countMaxFileTokens(isJsonObject(file) ? file.file_data : undefined);
  return type === 'video_url' ? Number.POSITIVE_INFINITY : 0;
}

/** Whatever is neither may be a program of one token for each sign, or a spreadsheet that is packed. */
function countMaxFileTokens(data: unknown): number {
  if (typeof data !== 'string') return Number.POSITIVE_INFINITY;
  if (PDF_DATA.test(data)) return MAX_TOKENS_PER_PDF;
  const text = TEXT_DATA.test(data) ? decodeText(data) : undefined;
  return text === undefined || isDisguised(text) ? Number.POSITIVE_INFINITY : countMaxTextTokens(text);
}

/** Vendors also go by the name of a file, or its content. */
function isDisguised(text: string): boolean {
  const head = text.slice(0, HEAD_CHARACTERS);
  return head.includes('%PDF-') || /\p{Cc}/u.test(head.replace(/\s/g, ''));
}

/** Attached text counts as text. */
function decodeText(data: string): string {
  const start = data.indexOf(',') + 1;
  return data.slice(0, start).includes('base64') ? Buffer.from(data.slice(start), 'base64').toString('utf8') : data;
}

let tokenizer: typeof import('gpt-tokenizer/encoding/o200k_base') | undefined;

/** Loads the tables of the tokenizer, which take a while and a lot of memory. */
export async function loadTokenizer(): Promise<void> {
  tokenizer ??= await import('gpt-tokenizer/encoding/o200k_base');
}

/** Counts tokens with a tokenizer; used only when an upstream did not say. Loads its tables on first use. */
export async function countTokens(text: string): Promise<number> {
  await loadTokenizer();
  let total = 0;
  for await (const part of splitForTokenizerAsync(text)) total += countPart(part);
  return total;
}

/** The same at once, of a text that is not long. The tokenizer must have been loaded. */
export function countTokensSync(text: string): number {
  let total = 0;
  for (const part of splitForTokenizer(text)) total += countPart(part);
  return total;
}

function countPart(part: string): number {
  if (!tokenizer) throw new Error('the tokenizer is not loaded');
  return tokenizer.countTokens(part, { allowedSpecial: 'all' });
}

/** Counts the input of a request as countTokens would see it. */
export async function countInputTokens(body: ChatBody): Promise<number> {
  const { text, otherTokens } = collectInput(body);
  return otherTokens + (await countTokens(text));
}

/** The same, for so much of it as anyone may have counted for nothing: what is longer is taken to go on like that. */
export async function estimateInputTokens(body: ChatBody): Promise<number> {
  const { text, otherTokens } = collectInput(body);
  const countedTokens = await countTokens(text.slice(0, ESTIMATED_CHARACTERS));
  return otherTokens + Math.ceil(countedTokens * Math.max(text.length / ESTIMATED_CHARACTERS, 1));
}

/** All text of a request, and the tokens of everything else. */
function collectInput({ messages, tools }: ChatBody): { readonly text: string; readonly otherTokens: number } {
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
  return { text: texts.join('\n'), otherTokens: Math.ceil(attached) + messages.length * 4 };
}
