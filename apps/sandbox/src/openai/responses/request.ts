/** A request for a response as OpenAI would understand it, or refuse it. */
import { ANY_OBJECT, type Format } from '../../provider/model-output.ts';
import type { Question } from '../../provider/serve.ts';
import type { Tool, Toolbox } from '../../provider/tools.ts';
import { parseObject } from '../../router.ts';
import {
  assertNoImage,
  countPrompt,
  isObject,
  roundsIn,
  type SandboxContentPart,
  textOf,
  toolsIn,
} from '../chat-request.ts';
import { refusal } from '../errors.ts';
import { findModel, type OpenAiModel, type OpenAiProvider } from '../models.ts';
import type { SandboxBody } from '../parameters.ts';
import { given, wrongType, wrongValue } from '../parameters.ts';
import { type InputTurn, turnOf } from './items.ts';
import { assertParameters, type Extras, extrasOf, missing, outputLimit } from './parameters.ts';

export interface SandboxResponsesRequest extends Question<OpenAiModel> {
  /** What was sent, for the answer repeats most of it. */
  readonly body: SandboxBody;
  readonly extras: Extras;
  readonly obfuscate: boolean;
}

const TOOL_TYPES = ['function', 'custom', 'web_search'];
/** Searches for one answer, where the request does not say. */
const MOST_SEARCHES = 10;

/** @throws Refusal in OpenAI's shape */
export function readResponsesRequest(text: string, provider: OpenAiProvider): SandboxResponsesRequest {
  const body = parseObject(text);
  if (!body) throw refusal(400, 'We could not parse the JSON body of your request. The API expects a JSON object.');
  if (!given(body.model) || body.model === '') throw missing('model');
  assertParameters(body);
  const model = findModel(provider, body.model as string);
  if (!given(body.input) || (body.input as readonly unknown[]).length === 0) throw missing('input');
  const turn = turnOf(body.input);
  if (model.textOnly) assertNoImage(turn.messages);
  const extras = extrasOf(body, model);
  const options = body.stream_options as SandboxContentPart | null | undefined;
  return {
    body,
    model,
    extras,
    stream: body.stream === true,
    obfuscate: options?.include_obfuscation !== false,
    n: 1,
    limit: outputLimit(body, model),
    promptTokens: promptTokens(body, turn, model),
    reasons: model.reasons,
    toolbox: toolboxOf(body, turn),
    format: formatOf(body, text),
    lastUserText: textOf(turn.messages.findLast(({ role }) => role === 'user')?.content),
  };
}

/** With truncation the oldest messages are left out until the rest fits. @throws Refusal */
function promptTokens(
  { tools, text, instructions, truncation }: SandboxBody,
  turn: InputTurn,
  { context }: OpenAiModel,
): number {
  const asked = { tools: chatTools(tools), response_format: chatFormat(text) };
  const system = typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : [];
  let { messages } = turn;
  for (;;) {
    const tokens = countPrompt(asked, [...system, ...messages]) + turn.reasoning;
    if (tokens <= context) return tokens;
    if (truncation !== 'auto' || messages.length === 1) throw tooLong();
    messages = messages.slice(1);
  }
}

/** Tools as a chat has them, so that they count the same. */
function chatTools(tools: unknown): readonly SandboxContentPart[] | undefined {
  const list = toolsIn(tools);
  if (list.length === 0) return undefined;
  return list.map(({ type, ...tool }, at) => {
    if (!TOOL_TYPES.includes(type as string)) throw wrongValue(`tools[${at}].type`, type, TOOL_TYPES);
    if (type === 'web_search') return { type };
    if (!given(tool.name)) throw missing(`tools[${at}].name`);
    return { type, [type as string]: withoutNulls(tool) };
  });
}

function chatFormat(text: unknown): SandboxContentPart | undefined {
  const { type, ...format } = (((text as SandboxContentPart | null | undefined)?.format as SandboxContentPart) ??
    {}) as SandboxContentPart;
  if (type === undefined || type === 'text') return undefined;
  return type === 'json_schema' ? { type, json_schema: withoutNulls(format) } : { type };
}

function withoutNulls(fields: SandboxContentPart): SandboxContentPart {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

function formatOf({ text }: SandboxBody, seed: string): Format | undefined {
  const { type, schema } = (((text as SandboxContentPart | null | undefined)?.format as SandboxContentPart) ??
    {}) as SandboxContentPart;
  if (type === 'json_object') return { schema: ANY_OBJECT, seed };
  return type === 'json_schema' ? { schema, seed } : undefined;
}

function toolboxOf(body: SandboxBody, { messages }: InputTurn): Toolbox {
  const { tools, tool_choice, max_tool_calls, parallel_tool_calls, reasoning } = body;
  const searches = ((tools ?? []) as readonly SandboxContentPart[]).some(({ type }) => type === 'web_search');
  if (searches && (reasoning as SandboxContentPart | null | undefined)?.effort === 'minimal') {
    const message = "The following tools cannot be used with reasoning.effort 'minimal': web_search.";
    throw refusal(400, message, 'tools');
  }
  const ownUses = (max_tool_calls ?? MOST_SEARCHES) as number;
  const offered = ((tools ?? []) as readonly SandboxContentPart[]).map(({ type, name, parameters }): Tool => {
    if (type === 'web_search') return { name: type, schema: {}, ownUses };
    return { name: String(name), schema: type === 'custom' ? undefined : (parameters ?? {}) };
  });
  const parallel = parallel_tool_calls !== false;
  const allowed = allowedOf(tool_choice, offered);
  const choice = choiceOf(allowed ? (tool_choice as SandboxContentPart).mode : tool_choice, offered);
  return { tools: allowed ?? offered, choice, parallel, rounds: roundsIn(messages) };
}

/** The tools that a choice of several leaves; undefined for any other choice. */
function allowedOf(choice: unknown, offered: readonly Tool[]): readonly Tool[] | undefined {
  if (!isObject(choice) || choice.type !== 'allowed_tools') return undefined;
  if (choice.mode !== 'auto' && choice.mode !== 'required')
    throw wrongValue('tool_choice.mode', choice.mode, ['auto', 'required']);
  if (!Array.isArray(choice.tools)) throw missing('tool_choice.tools');
  return choice.tools.map((tool: unknown, at) => {
    const { type, name = type } = isObject(tool) ? tool : {};
    const found = offered.find((each) => each.name === name);
    if (found && TOOL_TYPES.includes(type as string)) return found;
    throw refusal(400, `Tool choice '${name}' not found in 'tools' parameter.`, `tool_choice.tools[${at}]`);
  });
}

function choiceOf(choice: unknown, tools: readonly Tool[]): Toolbox['choice'] {
  if (!given(choice) || choice === 'auto' || choice === 'none') return (choice ?? 'auto') as 'auto' | 'none';
  if (choice === 'required' && tools.length > 0) return choice;
  if (choice !== 'required' && !isObject(choice)) throw wrongValue('tool_choice', choice, ['none', 'auto', 'required']);
  const name = isObject(choice) ? (choice.type === 'web_search' ? choice.type : choice.name) : undefined;
  if (isObject(choice) && !TOOL_TYPES.includes(choice.type as string))
    throw wrongType('tool_choice', 'a function', choice.type);
  const tool = tools.find((each) => each.name === name);
  if (tool) return { name: tool.name };
  throw refusal(400, `Tool choice '${name ?? choice}' not found in 'tools' parameter.`, 'tool_choice');
}

function tooLong() {
  const message = 'Your input exceeds the context window of this model. Please adjust your input and try again.';
  return refusal(400, message, 'input', 'context_length_exceeded');
}
