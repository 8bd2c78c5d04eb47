/** Converts the input of a response to messages of a chat. */
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';

import { toSummaryMessage } from './compaction.ts';
import { type ChatMessage, toAgentMessage, toChatMessage, toToolOutput } from './parts.ts';
import { ReasoningDecoder } from './reasoning.ts';
import { type ToolName, type Toolset, toFunctionArguments } from './toolset.ts';

/**
 * Types of items that chats do not support. A search can be omitted, because the text after it contains its outcome.
 * Only the provider that generated reasoning can use it. Reasoning of chats is an exception: see `reasoning.ts`.
 */
export const OMITTED_ITEM_TYPES: ReadonlySet<unknown> = new Set(['reasoning', 'web_search_call']);
const CALL_OUTPUT_TYPES: ReadonlySet<unknown> = new Set(['function_call_output', 'custom_tool_call_output']);
/** Types of items that have no content and change settings for the rest of the conversation. */
export const SETTING_ITEM_TYPES: ReadonlySet<unknown> = new Set(['additional_tools', 'configuration_update']);

/**
 * Limit of the inputs of custom calls and the encoded summaries of one request, in characters: they are converted at
 * once, which takes 16 ms for so many. The largest context of a model has half as many.
 */
const MAX_CONVERTED_CHARACTERS = 8 * 1024 * 1024;

/** Converts the input to items. They are validated when they are converted to messages. */
export function toItems(input: string | readonly unknown[]): readonly unknown[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;
}

/**
 * @param earlier items of the continued conversation
 * @param tools provides the names of called tools
 * @throws InvalidRequestError (400) naming the invalid field
 */
export function toChatMessages(
  input: readonly unknown[],
  earlier: readonly JsonObject[],
  tools: Toolset,
): readonly ChatMessage[] {
  const transcript = new Transcript(tools);
  for (const item of earlier) transcript.append(item, 'previous_response_id');
  for (const [at, item] of input.entries()) transcript.append(item, `input[${at}]`);
  if (transcript.messages.length === 0) throw invalidRequest('input must have at least one message', 'input');
  return transcript.messages;
}

/** Builds the messages in the order of the items. Never searches the earlier items: that would take quadratic time. */
class Transcript {
  readonly messages: ChatMessage[] = [];
  /** Index of the output message of each call, by call id; undefined before the first output. */
  private readonly outputs = new Map<unknown, number | undefined>();
  /** Calls of the last message while further calls can join them, else undefined. */
  private calls: JsonObject[] | undefined;
  /** Reasoning that belongs to the next message or call of the model. */
  private reasoningDetails: JsonObject[] = [];
  private readonly reasoning = new ReasoningDecoder();
  private convertedCharacters = 0;

  constructor(private readonly tools: Toolset) {}

  append(item: unknown, param: string): void {
    if (!isJsonObject(item)) throw invalidRequest(`${param} must be an object`, param);
    const { type = 'message' } = item;
    if (type === 'message') this.add(toChatMessage(item, param));
    else if (type === 'agent_message') this.add(toAgentMessage(item, param));
    else if (type === 'compaction') this.addSummary(item, param);
    else if (type === 'function_call') this.addCall(item, item.arguments, param);
    else if (type === 'custom_tool_call') this.addCall(item, item.input, param);
    else if (CALL_OUTPUT_TYPES.has(type)) this.addOutput(item, param);
    else if (type === 'reasoning') append(this.reasoningDetails, this.reasoning.decode(item, param));
    else if (!OMITTED_ITEM_TYPES.has(type) && !SETTING_ITEM_TYPES.has(type))
      throw invalidRequest(`Items of the type "${String(type)}" are not supported`, `${param}.type`);
  }

  private addSummary(item: JsonObject, param: string): void {
    this.limitConversion(item.encrypted_content, `${param}.encrypted_content`);
    this.add(toSummaryMessage(item, param));
  }

  private limitConversion(text: unknown, param: string): void {
    if (typeof text === 'string') this.convertedCharacters += text.length;
    if (this.convertedCharacters <= MAX_CONVERTED_CHARACTERS) return;
    const subject = 'The inputs of custom calls and the summaries';
    throw invalidRequest(`${subject} must have at most ${MAX_CONVERTED_CHARACTERS} characters in total`, param);
  }

  private add(message: ChatMessage): void {
    this.messages.push(message.role === 'assistant' ? this.withReasoning(message) : message);
    this.reasoningDetails = [];
    this.calls = undefined;
  }

  /** Combines the calls of one turn and the text before them into one message. */
  private addCall({ type, call_id, name, namespace = null }: JsonObject, text: unknown, param: string): void {
    const isCustom = type === 'custom_tool_call';
    if (typeof call_id !== 'string' || typeof name !== 'string' || typeof text !== 'string') {
      const textName = isCustom ? 'an input' : 'arguments';
      throw invalidRequest(`${param} must have a call_id, a name and ${textName}, all of them strings`, param);
    }
    if (namespace !== null && typeof namespace !== 'string') {
      throw invalidRequest(`${param}.namespace must be a string`, `${param}.namespace`);
    }
    if (isCustom) this.limitConversion(text, `${param}.input`);
    this.calls ??= this.openToolCalls();
    const toolName: ToolName = namespace === null ? { name } : { name, namespace };
    const called = { name: this.tools.getModelName(toolName), arguments: isCustom ? toFunctionArguments(text) : text };
    this.calls.push({ id: call_id, type: 'function', function: called });
    if (this.reasoningDetails.length > 0) this.messages.push(this.withReasoning(this.messages.pop() as ChatMessage));
    this.reasoningDetails = [];
    this.outputs.set(call_id, undefined);
  }

  private openToolCalls(): JsonObject[] {
    const last = this.messages.at(-1);
    const assistantMessage = last?.role === 'assistant' ? this.messages.pop() : undefined;
    const tool_calls = assistantMessage ? [...toList(assistantMessage.tool_calls)] : [];
    this.messages.push({ role: 'assistant', content: null, ...assistantMessage, tool_calls });
    return tool_calls;
  }

  private withReasoning(message: ChatMessage): ChatMessage {
    if (this.reasoningDetails.length === 0) return message;
    return { ...message, reasoning_details: append(toList(message.reasoning_details), this.reasoningDetails) };
  }

  /** A tool may return several outputs, but a call in a chat has one, so further outputs are appended to the first. */
  private addOutput({ call_id, output }: JsonObject, param: string): void {
    if (!this.outputs.has(call_id)) {
      throw invalidRequest(`${param}.call_id must be the call_id of an earlier call`, `${param}.call_id`);
    }
    const content = toToolOutput(output, param);
    const at = this.outputs.get(call_id);
    const before = at === undefined ? undefined : this.messages[at];
    if (at !== undefined && before) this.messages[at] = { ...before, content: joinContent(before.content, content) };
    else {
      this.outputs.set(call_id, this.messages.length);
      this.add({ role: 'tool', tool_call_id: call_id, content });
    }
  }
}

function joinContent(before: unknown, addition: unknown): string | readonly JsonObject[] {
  if (typeof before === 'string' && typeof addition === 'string') return `${before}\n${addition}`;
  const toParts = (content: unknown) =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : toList(content);
  return append(toParts(before), toParts(addition));
}

/** Adds to a list of the transcript itself. Copying the list each time would take quadratic time. */
function append(list: JsonObject[], additions: readonly JsonObject[]): JsonObject[] {
  for (const addition of additions) list.push(addition);
  return list;
}

function toList(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value : [];
}
