/** A request in the protocol of Responses, for endpoints that speak it: the fields that the endpoint knows. */
import type { Endpoint } from '#catalogue';
import { boundText } from '../../tokenizer.ts';
import type { Reasoning } from '../vocabulary/chat-body.ts';
import { LEAST_OUTPUT } from '../vocabulary/quote.ts';
import type { ResponsesBody, Understood } from './body.ts';
import { isObject, isText, LEFT_OUT, type Thing, urlOf } from './items.ts';

const ENCRYPTED = 'reasoning.encrypted_content';
/** What to `include` for the probabilities of tokens. */
export const LOGPROBS = 'message.output_text.logprobs';
/** Encrypted reasoning has more characters of base64 than this for each of its tokens. */
const BASE64_PER_TOKEN = 4;

export interface NativeRequest extends Understood {
  readonly body: ResponsesBody;
  /** All that was said: what was said before, and the input. */
  readonly items: readonly Thing[];
  /** It has a field that only chats support. */
  readonly chatOnly: boolean;
}

/** Reasoning that an upstream has encrypted or a search that it has made, and the upstream: no other can use it. */
export interface Kept {
  readonly made_by?: string;
}

/** Whether an endpoint is called with Responses; it may speak both. @param limit output tokens at most */
export function isAskedNatively({ speaks }: Endpoint, request: NativeRequest, limit: number | undefined): boolean {
  if (!speaks.includes('responses')) return false;
  return !speaks.includes('chat') || (!request.chatOnly && (limit ?? LEAST_OUTPUT) >= LEAST_OUTPUT);
}

/** Tokens that come on top of those of the chat, at most: of reasoning, its summary, and searches that were made. */
export function boundCarried({ items }: NativeRequest): number {
  let tokens = 0;
  for (const item of items) {
    const { type, encrypted_content: encrypted, ...rest } = item;
    if (!LEFT_OUT.has(type)) continue;
    tokens += boundText(JSON.stringify(rest));
    if (typeof encrypted === 'string') tokens += encrypted.length / BASE64_PER_TOKEN;
  }
  return Math.ceil(tokens);
}

export function wantsLogprobs({ include, top_logprobs }: ResponsesBody): boolean {
  return include?.includes(LOGPROBS) === true || typeof top_logprobs === 'number';
}

export function wantsEncrypted({ include }: ResponsesBody): boolean {
  return include?.includes(ENCRYPTED) === true;
}

/** Whether a conversation that is too long may be truncated. */
export function truncates({ truncation }: ResponsesBody): boolean {
  return truncation === 'auto';
}

/**
 * The request for an upstream: the fields that it knows. It keeps nothing, since we do. Connectors say the reasoning in
 * their upstream's words.
 * @param limit output tokens at most; undefined for as many as the model makes
 */
export function responsesBody(
  request: NativeRequest,
  { model, parameters, slug }: Pick<Endpoint, 'model' | 'parameters' | 'slug'>,
  limit: number | undefined,
  reasoning?: Reasoning,
): Record<string, unknown> {
  const { body, items, store } = request;
  const knows: Knows = (parameter) => parameters.includes(parameter);
  const logprobs = knows('logprobs') && wantsLogprobs(body);
  const encrypted = knows('reasoning') && (store || wantsEncrypted(body));
  const include = [...(logprobs ? [LOGPROBS] : []), ...(encrypted ? [ENCRYPTED] : [])];
  return {
    model,
    input: inputFor(items, slug),
    store: false,
    ...given({
      instructions: body.instructions || null,
      max_output_tokens: limit,
      temperature: knows('temperature') ? body.temperature : null,
      top_p: knows('top_p') ? body.top_p : null,
      user: knows('user') ? body.user : null,
      reasoning: knows('reasoning') ? reasoningOf(body, reasoning) : null,
      text: textOf(request, knows),
      include: include.length > 0 ? include : null,
      top_logprobs: logprobs && knows('top_logprobs') ? body.top_logprobs : null,
      truncation: truncates(body) ? 'auto' : null,
    }),
    ...toolsOf(request, knows),
    ...(body.stream ? { stream: true, stream_options: { include_obfuscation: false } } : {}),
  };
}

type Knows = (parameter: string) => boolean;

function given(fields: Thing): Thing {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

function orNothing(fields: Thing): Thing | undefined {
  return Object.keys(fields).length > 0 ? fields : undefined;
}

/** As in a chat, with the summary that only Responses know. */
function reasoningOf({ reasoning }: ResponsesBody, requested: Reasoning | undefined): Thing | undefined {
  const summary = requested?.exclude ? null : reasoning?.summary;
  return orNothing(given({ ...requested, summary }));
}

function textOf({ format, body }: NativeRequest, knows: Knows): Thing | undefined {
  const wanted = format.type !== 'text' && knows('response_format');
  const verbosity = knows('verbosity') ? body.text?.verbosity : null;
  return orNothing(given({ format: wanted ? given(format) : null, verbosity }));
}

/** Functions only: searches are ours to make. */
function toolsOf({ tools, toolChoice, body }: NativeRequest, knows: Knows): Thing {
  const functions = tools.filter(({ type }) => type === 'function');
  if (functions.length === 0 || !knows('tools')) return {};
  const isOurs = typeof toolChoice === 'object' && toolChoice.type !== 'function';
  return given({
    tools: functions.map(({ parameters, ...tool }) => ({ ...given(tool), parameters })),
    tool_choice: knows('tool_choice') && !isOurs ? toolChoice : null,
    parallel_tool_calls: knows('parallel_tool_calls') ? body.parallel_tool_calls : null,
  });
}

/**
 * Items as an upstream that keeps nothing takes them. What it made of its own goes without the ids that it does not know
 * any more; reasoning goes encrypted, together with what it led to, or not at all.
 */
function inputFor(items: readonly Thing[], slug: string): readonly Thing[] {
  const input: Thing[] = [];
  /** Reasoning whose consequence has not come yet. */
  let thought: Thing[] = [];
  for (const item of items) {
    const { type = 'message', role } = item;
    if (type === 'reasoning') {
      thought.push(...reasoningFor(item, slug));
      continue;
    }
    if (type === 'web_search_call') {
      const { made_by, ...search } = item as Thing & Kept;
      if (made_by === slug) input.push(...thought, search);
      thought = [];
      continue;
    }
    if (role === 'assistant' || type === 'function_call') input.push(...thought);
    thought = [];
    input.push(itemFor(item));
  }
  return input;
}

function reasoningFor({ made_by, id, summary, encrypted_content }: Thing & Kept, slug: string): readonly Thing[] {
  if (typeof encrypted_content !== 'string' || (made_by !== undefined && made_by !== slug)) return [];
  return [{ type: 'reasoning', id, summary: summary ?? [], encrypted_content }];
}

function itemFor({ type = 'message', ...item }: Thing): Thing {
  if (type === 'function_call') {
    const { call_id, name, arguments: args } = item;
    return { type, call_id, name, arguments: args };
  }
  if (type === 'function_call_output') return { type, call_id: item.call_id, output: textIn(item.output) };
  const { role, content } = item;
  if (typeof content === 'string') return { type, role, content };
  if (role !== 'user' && role !== 'assistant') return { type, role, content: textIn(content) };
  const partFor = role === 'user' ? userPart : assistantPart;
  return { type, role, content: (content as readonly Thing[]).map(partFor) };
}

function assistantPart({ type, text, refusal }: Thing): Thing {
  return type === 'refusal' ? { type, refusal } : { type: 'output_text', text };
}

function userPart(part: Thing): Thing {
  if (isText(part.type)) return { type: 'input_text', text: part.text };
  if (part.type === 'input_image' || part.type === 'image_url') {
    const detail = isObject(part.image_url) ? part.image_url.detail : part.detail;
    return { type: 'input_image', image_url: urlOf(part), detail: typeof detail === 'string' ? detail : 'auto' };
  }
  if (part.type === 'input_audio') return part;
  const { file_data, filename } = isObject(part.file) ? part.file : part;
  return { type: 'input_file', file_data, ...(typeof filename === 'string' ? { filename } : {}) };
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  return (content as readonly { readonly text: string }[]).map(({ text }) => text).join('');
}
