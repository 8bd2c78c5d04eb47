/** Converts the input of a response to chat messages, so that its tokens count as in a chat. */
import { isObject, type SandboxContentPart } from '../chat-request.ts';
import { invalidRequestError } from '../errors.ts';
import { invalidTypeError, invalidValueError } from '../parameters.ts';
import { missingParameterError } from './parameters.ts';
import { parseReasoningTokens } from './reasoning.ts';

/** The parsed input of a response. */
export interface InputTurn {
  /** The equivalent chat messages. */
  readonly messages: readonly SandboxContentPart[];
  /** Tokens of the reasoning items in the input. */
  readonly reasoning: number;
}

const ROLES = ['assistant', 'system', 'developer', 'user'] as const;
const TYPES = [
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
  'reasoning',
  'web_search_call',
];
const PARTS: Readonly<Record<string, string>> = {
  input_text: 'text',
  output_text: 'text',
  input_image: 'image_url',
  input_file: 'file',
  refusal: 'refusal',
};

/** @throws HttpError */
export function parseTurn(input: unknown): InputTurn {
  if (typeof input === 'string') return { messages: [{ role: 'user', content: input }], reasoning: 0 };
  const items = input as readonly unknown[];
  const messages: SandboxContentPart[] = [];
  let reasoning = 0;
  items.forEach((item, at) => {
    const name = `input[${at}]`;
    if (!isObject(item)) throw invalidTypeError(name, 'an object', item);
    const type = item.type ?? (item.role === undefined ? undefined : 'message');
    if (type === undefined) throw missingParameterError(`${name}.type`);
    if (type === 'message') messages.push(toMessage(item, name));
    else if (type === 'function_call') addCall(messages, item, 'arguments', name);
    else if (type === 'custom_tool_call') addCall(messages, item, 'input', name);
    else if (type === 'function_call_output' || type === 'custom_tool_call_output')
      messages.push(toToolMessage(item, name));
    else if (type === 'reasoning') reasoning += parseReasoningTokens(item, items[at + 1], name);
    else if (type !== 'web_search_call') throw invalidValueError(`${name}.type`, type, TYPES);
  });
  assertCallsHaveOutputs(messages);
  return { messages, reasoning };
}

function toMessage({ role, content }: SandboxContentPart, name: string): SandboxContentPart {
  if (!ROLES.some((allowedRole) => allowedRole === role)) throw invalidValueError(`${name}.role`, role, ROLES);
  if (typeof content === 'string') return { role, content };
  if (!Array.isArray(content))
    throw invalidTypeError(`${name}.content`, 'one of a string or array of objects', content);
  return { role, content: content.map((part, at) => toPart(part, `${name}.content[${at}]`)) };
}

function toPart(part: unknown, name: string): SandboxContentPart {
  if (!isObject(part)) throw invalidTypeError(name, 'an object', part);
  const type = PARTS[part.type as string];
  if (type === undefined) throw invalidValueError(`${name}.type`, part.type, Object.keys(PARTS));
  if (type === 'text' && typeof part.text !== 'string')
    throw invalidTypeError(`${name}.text`, 'a string', part.text ?? null);
  if (part.type === 'input_image' && typeof part.image_url !== 'string')
    throw missingParameterError(`${name}.image_url`);
  if (part.type === 'input_file' && typeof part.file_data !== 'string')
    throw missingParameterError(`${name}.file_data`);
  return { ...part, type };
}

/** Adds a call. Calls of one turn and the text before them become one chat message. */
function addCall(
  messages: SandboxContentPart[],
  item: SandboxContentPart,
  field: 'arguments' | 'input',
  where: string,
): void {
  const { call_id, name, [field]: text } = item;
  for (const [key, value] of Object.entries({ call_id, name, [field]: text })) {
    if (value === undefined) throw missingParameterError(`${where}.${key}`);
    if (typeof value !== 'string') throw invalidTypeError(`${where}.${key}`, 'a string', value);
  }
  const last = messages.at(-1)?.role === 'assistant' ? messages.pop() : { role: 'assistant', content: null };
  const type = field === 'input' ? 'custom' : 'function';
  const call = { id: call_id, type, [type]: { name, [field]: text } };
  messages.push({ ...last, tool_calls: [...listCallIds(last), call] });
}

function toToolMessage({ call_id, output }: SandboxContentPart, name: string): SandboxContentPart {
  if (typeof call_id !== 'string') throw missingParameterError(`${name}.call_id`);
  const content = typeof output === 'string' ? output : toMessage({ role: 'user', content: output }, name).content;
  return { role: 'tool', tool_call_id: call_id, content };
}

/**
 * Checks that calls and outputs match. A call may have several outputs.
 * @throws HttpError if a call has no output after it, or an output has no call before it
 */
function assertCallsHaveOutputs(messages: readonly SandboxContentPart[]): void {
  const open = new Set<unknown>();
  const resolvedCallIds = new Set<unknown>();
  for (const message of messages) {
    for (const { id } of listCallIds(message)) open.add(id);
    if (message.role !== 'tool' || resolvedCallIds.has(message.tool_call_id)) continue;
    resolvedCallIds.add(message.tool_call_id);
    if (open.delete(message.tool_call_id)) continue;
    const reason = `No tool call found for function call output with call_id ${message.tool_call_id}.`;
    throw invalidRequestError(400, reason, 'input');
  }
  for (const id of open) throw invalidRequestError(400, `No tool output found for function call ${id}.`, 'input');
}

function listCallIds(message: SandboxContentPart | undefined): readonly SandboxContentPart[] {
  return (message?.tool_calls ?? []) as readonly SandboxContentPart[];
}
