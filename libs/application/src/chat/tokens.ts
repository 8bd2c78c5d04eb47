/** How many tokens a request has: a cheap upper bound before the call, and a count when no upstream reports one. */
import { UnservableRequest } from '../failures.ts';
import { boundText, partsOf } from '../tokenizer.ts';
import type { ChatBody } from './body.ts';

/** Tokens that chat formats add per message and per request. */
const PER_MESSAGE = 8;
const PER_REQUEST = 16;
/** Upper bound for an image at full detail, over the vendors: about 1,600 at the most common limits. */
const PER_IMAGE = 2_000;
/** Attached files and audio are counted by size: no vendor makes more than a token of four base64 characters. */
const BASE64_PER_TOKEN = 4;
/**
 * A PDF is read as text and as pictures of its pages, and a page may be a few bytes: vendors take 100 pages, and name
 * 3,000 tokens for a dense one.
 */
const PER_PDF = 300_000;
/** Parts whose content the upstream fetches or keeps itself: it may fill the context. */
const REMOTE: ReadonlySet<unknown> = new Set(['file', 'video_url', 'input_video']);
/** Deeper than any schema in use, and far from where the stack of whoever walks through it ends. */
const MAX_DEPTH = 100;

/**
 * An upper bound, in practice, of the input tokens of a request, without a tokenizer: by characters, and for those
 * outside ASCII also by the bytes they take more. Infinite where a part is somewhere else: as much as the context takes.
 * @throws UnservableRequest when it is nested too deeply
 */
export function boundInputTokens(body: ChatBody): number {
  const { messages, tools, response_format } = body;
  return Math.ceil(
    PER_REQUEST + PER_MESSAGE * messages.length + bound(messages) + bound(tools) + bound(response_format),
  );
}

function bound(value: unknown, depth = 0): number {
  if (typeof value === 'string') return boundText(value);
  if (typeof value !== 'object' || value === null) return 1;
  if (depth > MAX_DEPTH) throw new UnservableRequest(400, 'The request is nested too deeply');
  if (Array.isArray(value)) return value.reduce<number>((total, each) => total + bound(each, depth + 1), 0);
  const part = value as Part;
  const attached = attachment(part);
  if (attached !== undefined) return Math.max(attached, hidden(part));
  let total = 0;
  for (const [name, each] of Object.entries(value)) total += boundText(name) + bound(each, depth + 1);
  return total;
}

type Part = Readonly<Record<string, unknown>>;

/** Tokens of a content part that is not text, by its size. */
function attachment(part: Part): number | undefined {
  if (part.type === 'image_url' || part.type === 'input_image') return PER_IMAGE;
  if (part.type === 'input_audio' || REMOTE.has(part.type)) return JSON.stringify(part).length / BASE64_PER_TOKEN;
  return undefined;
}

/** Tokens that a content part may have whatever its size. */
function hidden(part: Part): number {
  if (!REMOTE.has(part.type)) return 0;
  const { file_data, url } = (part[String(part.type)] ?? {}) as {
    readonly file_data?: unknown;
    readonly url?: unknown;
  };
  const data = file_data ?? url;
  if (typeof data !== 'string' || !data.startsWith('data:')) return Number.POSITIVE_INFINITY;
  return /^data:(text|application\/json)\b/.test(data) || part.type !== 'file' ? 0 : PER_PDF;
}

/** Counts tokens with a tokenizer; used only when an upstream did not say. Loads its tables on first use. */
export async function countTokens(text: string): Promise<number> {
  const { countTokens: count } = await import('gpt-tokenizer/encoding/o200k_base');
  let total = 0;
  for await (const part of partsOf(text)) total += count(part, { allowedSpecial: 'all' });
  return total;
}

/** Counts the input of a request as countTokens would see it. */
export async function countInputTokens({ messages, tools }: ChatBody): Promise<number> {
  let images = 0;
  const texts: string[] = [];
  const collect = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value);
    else if (Array.isArray(value)) value.forEach(collect);
    else if (typeof value === 'object' && value !== null) {
      const attached = attachment(value as Part);
      if (attached === undefined) Object.values(value).forEach(collect);
      else images += attached;
    }
  };
  collect(messages);
  if (tools) texts.push(JSON.stringify(tools));
  return Math.ceil(images) + messages.length * 4 + (await countTokens(texts.join('\n')));
}
