/** The input of a response as messages of a chat. */
import { UnservableRequest } from '../../failures.ts';

export type Thing = Readonly<Record<string, unknown>>;
/** A message of a chat, in OpenAI's shape. */
export type ChatMessage = Thing & { readonly role: string };

/**
 * What a model has done by itself, and what a client sends back with the rest of an answer: its text says what came of
 * it, and no chat takes it.
 */
export const LEFT_OUT: ReadonlySet<unknown> = new Set(['reasoning', 'web_search_call']);

/** The input as items. What they are is judged when they become messages. */
export function itemsOf(input: string | readonly unknown[]): readonly unknown[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;
}

/**
 * @param earlier items of what was said before
 * @throws UnservableRequest that names the item
 */
export function messagesOf(input: readonly unknown[], earlier: readonly Thing[]): readonly ChatMessage[] {
  const transcript = new Transcript();
  for (const item of earlier) transcript.append(item, 'previous_response_id');
  for (const [at, item] of input.entries()) transcript.append(item, `input[${at}]`);
  if (transcript.messages.length === 0) throw refusal('input must have at least one message', 'input');
  return transcript.messages;
}

/** Messages in the order of the items, however many there are: an item never looks through those before it. */
class Transcript {
  readonly messages: ChatMessage[] = [];
  private readonly callIds = new Set<unknown>();
  /** The calls of the last message, as long as more may join them. */
  private calls: Thing[] | undefined;

  append(item: unknown, param: string): void {
    if (!isObject(item)) throw refusal(`${param} must be an object`, param);
    const { type = 'message' } = item;
    if (LEFT_OUT.has(type)) return;
    if (type === 'message') this.add(messageOf(item, param));
    else if (type === 'function_call') this.addCall(item, param);
    else if (type === 'function_call_output') this.add(this.outputOf(item, param));
    else throw refusal(`Items of the type "${String(type)}" are not supported`, `${param}.type`);
  }

  private add(message: ChatMessage): void {
    this.messages.push(message);
    this.calls = undefined;
  }

  /** Calls of one turn are one message, together with the text before them. */
  private addCall({ call_id, name, arguments: args }: Thing, param: string): void {
    if (typeof call_id !== 'string' || typeof name !== 'string' || typeof args !== 'string') {
      throw refusal(`${param} must have a call_id, a name and arguments, all of them strings`, param);
    }
    this.calls ??= this.callsOfLast();
    this.calls.push({ id: call_id, type: 'function', function: { name, arguments: args } });
    this.callIds.add(call_id);
  }

  private callsOfLast(): Thing[] {
    const last = this.messages.at(-1);
    const said = last?.role === 'assistant' ? this.messages.pop() : undefined;
    const tool_calls = said ? [...callsOf(said)] : [];
    this.messages.push({ role: 'assistant', content: null, ...said, tool_calls });
    return tool_calls;
  }

  private outputOf({ call_id, output }: Thing, param: string): ChatMessage {
    if (!this.callIds.has(call_id)) {
      throw refusal(`There is no function_call with the call_id of ${param}`, `${param}.call_id`);
    }
    const content = typeof output === 'string' ? output : textOf(output, param, 'output');
    return { role: 'tool', tool_call_id: call_id, content };
  }
}

function messageOf({ role, content }: Thing, param: string): ChatMessage {
  if (role === 'assistant') return { role, ...spoken(content, param) };
  // Every chat model knows "system"; "developer" only some.
  if (role === 'system' || role === 'developer') return { role: 'system', content: textOf(content, param) };
  if (role !== 'user') {
    throw refusal(`${param}.role must be "user", "assistant", "system" or "developer"`, `${param}.role`);
  }
  if (typeof content === 'string') return { role, content };
  return { role, content: partsOf(content, param).map((part, at) => chatPart(part, `${param}.content[${at}]`)) };
}

/** A message of the model itself. */
function spoken(content: unknown, param: string): Thing {
  if (typeof content === 'string') return { content };
  const parts = partsOf(content, param);
  const refused = parts.filter(({ type }) => type === 'refusal').map((part) => part.refusal);
  const text = textOf(
    parts.filter(({ type }) => type !== 'refusal'),
    param,
  );
  return refused.length === 0 ? { content: text } : { content: text || null, refusal: refused.join('') };
}

function callsOf({ tool_calls }: ChatMessage): readonly Thing[] {
  return Array.isArray(tool_calls) ? tool_calls : [];
}

/** Content that can only be text: of most roles, and of what tools answer. */
function textOf(content: unknown, param: string, field = 'content'): string {
  if (typeof content === 'string') return content;
  return partsOf(content, param, field)
    .map(({ type, text }, at) => {
      if (isText(type) && typeof text === 'string') return text;
      throw refusal(`${param}.${field}[${at}] must be text`, `${param}.${field}[${at}]`);
    })
    .join('');
}

function partsOf(content: unknown, param: string, field = 'content'): readonly Thing[] {
  if (Array.isArray(content) && content.every(isObject)) return content;
  throw refusal(`${param}.${field} must be a string or an array of objects`, `${param}.${field}`);
}

export function isText(type: unknown): boolean {
  return type === 'input_text' || type === 'output_text' || type === 'text';
}

function chatPart(part: Thing, param: string): Thing {
  const { type } = part;
  if (isText(type)) {
    if (typeof part.text !== 'string') throw refusal(`${param}.text must be a string`, `${param}.text`);
    return { type: 'text', text: part.text };
  }
  if (type === 'input_image' || type === 'image_url') return imagePart(part, param);
  if (type === 'input_file' || type === 'file') return filePart(part, param);
  if (type === 'input_audio' && isObject(part.input_audio)) return { type, input_audio: part.input_audio };
  throw refusal(`Content of the type "${String(type)}" is not supported`, `${param}.type`);
}

export function urlOf({ image_url }: Thing): unknown {
  return isObject(image_url) ? image_url.url : image_url;
}

function imagePart({ image_url, detail }: Thing, param: string): Thing {
  const url = urlOf({ image_url });
  if (typeof url !== 'string')
    throw refusal(`${param}.image_url must be an address or a data URL`, `${param}.image_url`);
  return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' ? { detail } : {}) } };
}

/** A file comes in the request: what it may cost is bounded by its size, which an address does not reveal. */
function filePart(part: Thing, param: string): Thing {
  const { file_data, filename } = isObject(part.file) ? part.file : part;
  if (typeof file_data !== 'string') {
    throw refusal(
      `${param}.file_data must be a data URL; files by id or address are not supported`,
      `${param}.file_data`,
    );
  }
  return { type: 'file', file: { ...(typeof filename === 'string' ? { filename } : {}), file_data } };
}

export function isObject(value: unknown): value is Thing {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refusal(message: string, param: string): UnservableRequest {
  return new UnservableRequest(400, message, param);
}
