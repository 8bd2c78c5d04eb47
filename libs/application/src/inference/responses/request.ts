/** A request in the shape of OpenAI's Responses, and the chat request that it means. */

import { UnservableRequest } from '../../failures.ts';
import type { ChatBody } from '../vocabulary/chat-body.ts';
import type { ResponsesBody, Understood } from './body.ts';
import { type ChatMessage, isObject, itemsOf, messagesOf, type Thing } from './items.ts';
import { type NativeRequest, wantsLogprobs } from './native-request.ts';

/** A request as it was understood, and the chat request that it means. */
export interface ResponsesRequest extends Understood {
  readonly chat: ChatBody;
  /** The same, for endpoints that speak Responses. */
  readonly native: NativeRequest;
  /** The conversation so far, for requests that continue it: all but the instructions, which are never carried on. */
  readonly said: readonly Thing[];
  readonly metadata: Readonly<Record<string, string>>;
}

const MAX_TAGS = 16;
/** The same in both shapes. */
const SHARED = [
  'model',
  'stream',
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'parallel_tool_calls',
  'user',
  'provider',
  'plugins',
] as const;
/** These change the answer: to ignore them would be to answer something else. */
const UNSUPPORTED = ['background', 'conversation', 'prompt'] as const;
/** OpenAI's and OpenRouter's names, old and new, for one tool. */
const WEB_SEARCH = /^(openrouter:)?web_search(_preview)?(_\d{4}_\d{2}_\d{2})?$/;
const TEXT = { type: 'text' };

/**
 * @param earlier what was said before, where the request continues a stored response
 * @throws UnservableRequest that names the field that cannot be served
 */
export function readResponsesRequest(body: ResponsesBody, earlier: readonly Thing[] = []): ResponsesRequest {
  for (const field of UNSUPPORTED) if (body[field]) throw refusal(`${field} is not supported`, field);
  const input = itemsOf(body.input);
  const messages = messagesOf(input, earlier);
  const said = [...earlier, ...(input as readonly Thing[])];
  const tools = (body.tools ?? []).map(flatTool);
  const toolChoice = flatToolChoice(body.tool_choice);
  const format = flatFormat(body.text?.format ?? body.response_format ?? TEXT);
  const metadata = tagsOf(body.metadata ?? {});
  const store = body.store ?? !wantsNoRetention(body);
  const understood = { tools, toolChoice, format, store };
  const native = { ...understood, body, items: said, chatOnly: isChatOnly(body, messages) };
  return { ...understood, chat: chatOf(body, understood, messages), native, said, metadata };
}

function chatOf(body: ResponsesBody, understood: Understood, messages: readonly ChatMessage[]): ChatBody {
  const { tools, toolChoice, format } = understood;
  const { instructions, max_output_tokens, reasoning, top_logprobs } = body;
  const system = instructions ? [{ role: 'system', content: instructions }] : [];
  const chat: Record<string, unknown> = { messages: [...system, ...messages] };
  for (const field of SHARED) if (body[field] !== undefined && body[field] !== null) chat[field] = body[field];
  if (max_output_tokens) chat.max_completion_tokens = max_output_tokens;
  if (reasoning) chat.reasoning = reasoning;
  if (body.text?.verbosity) chat.verbosity = body.text.verbosity;
  if (format.type !== 'text') chat.response_format = chatFormat(format);
  if (wantsLogprobs(body)) chat.logprobs = true;
  if (top_logprobs !== undefined && top_logprobs !== null) chat.top_logprobs = top_logprobs;
  // Upstreams refuse a choice of tools, and how to call them, where there are none.
  if (tools.length > 0) Object.assign(chat, { tools: tools.map(chatTool), tool_choice: chatToolChoice(toolChoice) });
  else delete chat.parallel_tool_calls;
  return chat as ChatBody;
}

/** Responses know neither penalties nor sounds. */
function isChatOnly({ presence_penalty, frequency_penalty }: ResponsesBody, messages: readonly ChatMessage[]): boolean {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? (content as readonly Thing[]) : []));
  return Boolean(presence_penalty || frequency_penalty) || parts.some(({ type }) => type === 'input_audio');
}

/** A caller that asks for upstreams without retention does not expect us to store anything. */
function wantsNoRetention({ provider }: ResponsesBody): boolean {
  return isObject(provider) && (provider.zdr === true || provider.data_collection === 'deny');
}

function flatTool(tool: unknown, at: number): Thing {
  const param = `tools[${at}]`;
  if (!isObject(tool) || typeof tool.type !== 'string') throw refusal(`${param} must be an object with a type`, param);
  if (WEB_SEARCH.test(tool.type)) return { ...tool, type: 'web_search' };
  if (tool.type !== 'function') throw refusal(`Tools of the type "${tool.type}" are not supported`, `${param}.type`);
  const { name, description, parameters, strict } = isObject(tool.function) ? tool.function : tool;
  if (typeof name !== 'string' || name === '') throw refusal(`${param}.name must be a string`, `${param}.name`);
  const about = typeof description === 'string' ? { description } : {};
  return { type: 'function', name, ...about, parameters: parameters ?? null, strict: strict ?? null };
}

function chatTool({ type, ...tool }: Thing): Thing {
  if (type !== 'function') return { type, ...tool };
  return { type, function: Object.fromEntries(Object.entries(tool).filter(([, value]) => value !== null)) };
}

function flatToolChoice(choice: unknown): string | Thing {
  if (choice === undefined || choice === null) return 'auto';
  if (choice === 'auto' || choice === 'none' || choice === 'required') return choice;
  if (isObject(choice) && typeof choice.type === 'string') {
    if (WEB_SEARCH.test(choice.type)) return { type: 'web_search' };
    const { name } = isObject(choice.function) ? choice.function : choice;
    if (choice.type === 'function' && typeof name === 'string') return { type: 'function', name };
  }
  const message = 'tool_choice must be "auto", "none", "required", or an object with the type and name of a function';
  throw refusal(message, 'tool_choice');
}

function chatToolChoice(choice: string | Thing): unknown {
  if (typeof choice === 'string' || choice.type !== 'function') return choice;
  return { type: 'function', function: { name: choice.name } };
}

/** Chat nests the schema, Responses does not; clients send both. */
function flatFormat(format: unknown): Thing {
  const param = 'text.format';
  if (isObject(format)) {
    if (format.type === 'text' || format.type === 'json_object') return { type: format.type };
    const { name, description, schema, strict } = isObject(format.json_schema) ? format.json_schema : format;
    if (format.type === 'json_schema') {
      if (typeof name !== 'string') throw refusal(`${param}.name must be a string`, `${param}.name`);
      if (!isObject(schema)) throw refusal(`${param}.schema must be a JSON schema`, `${param}.schema`);
      const about = typeof description === 'string' ? { description } : {};
      return { type: 'json_schema', name, ...about, schema, strict: strict ?? null };
    }
  }
  throw refusal(`${param} must have the type "text", "json_object" or "json_schema"`, param);
}

function chatFormat({ type, ...format }: Thing): Thing {
  if (type !== 'json_schema') return { type };
  return { type, json_schema: Object.fromEntries(Object.entries(format).filter(([, value]) => value !== null)) };
}

function tagsOf(metadata: Thing): Readonly<Record<string, string>> {
  const tags = Object.entries(metadata);
  if (tags.length > MAX_TAGS) throw refusal(`metadata can have at most ${MAX_TAGS} tags`, 'metadata');
  for (const [name, value] of tags) {
    if (!['string', 'number', 'boolean'].includes(typeof value))
      throw refusal(`metadata.${name} must be a string, a number or a boolean`, 'metadata');
  }
  return Object.fromEntries(tags.map(([name, value]) => [name, String(value)]));
}

function refusal(message: string, param: string): UnservableRequest {
  return new UnservableRequest(400, message, param);
}
