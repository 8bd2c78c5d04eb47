/** Collects the chunks of a streamed chat into the equivalent non-streaming response. */
import { type JsonObject } from '#kernel';
import { UpstreamError } from '../../errors.ts';

type MutableJson = Record<string, unknown>;

/** String fields whose chunks are concatenated. A chunk of any other string field replaces the previous value. */
const CHUNKED_FIELDS: ReadonlySet<string> = new Set([
  'content',
  'reasoning',
  'reasoning_content',
  'refusal',
  'arguments',
  'text',
  'summary',
  'data',
  'input',
]);

/** OpenAI's maximum of `n`. */
const MAX_CHOICES = 128;

interface Choice {
  readonly message: MutableJson;
  readonly logprobs: MutableJson;
  readonly rest: MutableJson;
}

export class ChatChunkCollector {
  private readonly choices: Choice[] = [];
  private head: JsonObject = {};
  private usage: unknown;

  /** @throws UpstreamError if the index of a choice is not an integer from 0 to 127 */
  accept({ choices, obfuscation: _, usage, ...head }: JsonObject): void {
    this.head = { ...head, ...this.head };
    this.usage = usage ?? this.usage;
    for (const choiceChunk of (choices ?? []) as readonly JsonObject[]) {
      const { index = 0, delta = {}, logprobs, ...rest } = choiceChunk as { readonly index?: number } & JsonObject;
      if (!(Number.isInteger(index) && index >= 0 && index < MAX_CHOICES))
        throw new UpstreamError('upstream_error', 'The provider sent a choice with an invalid index');
      this.choices[index] ??= { message: {}, logprobs: {}, rest: {} };
      const choice = this.choices[index] as Choice;
      mergeChunk(choice.message, delta as JsonObject);
      if (logprobs) mergeChunk(choice.logprobs, logprobs as JsonObject);
      for (const [name, value] of Object.entries(rest)) if (value !== null) choice.rest[name] = value;
    }
  }

  get body(): JsonObject {
    const { head, choices, usage } = this;
    const used = usage === undefined ? {} : { usage };
    // `flatMap` omits the holes of this sparse array, which `map` would preserve: a choice may never have arrived.
    return { ...head, object: 'chat.completion', choices: choices.flatMap(toChoiceJson), ...used };
  }
}

function toChoiceJson({ message, logprobs, rest }: Choice, index: number): object {
  const { content = null, refusal = null, annotations = [], ...otherFields } = message;
  const calls = Array.isArray(otherFields.tool_calls) ? { tool_calls: otherFields.tool_calls.map(omitIndex) } : {};
  return {
    index,
    message: {
      role: 'assistant',
      content: content === '' && 'tool_calls' in otherFields ? null : content,
      refusal,
      annotations,
      ...otherFields,
      ...calls,
    },
    logprobs: Object.keys(logprobs).length > 0 ? logprobs : null,
    finish_reason: null,
    ...rest,
  };
}

/** Only chunks of tool calls have an `index`; complete tool calls do not. */
function omitIndex({ index: _, ...call }: JsonObject): JsonObject {
  return call;
}

/**
 * Merges a chunk into `target`: appends to the strings of `CHUNKED_FIELDS`, merges objects by field and list members by
 * their `index`, appends list members without an `index`, and replaces any other value. Null replaces no value.
 */
function mergeChunk(target: MutableJson, chunk: JsonObject): void {
  for (const [name, value] of Object.entries(chunk)) {
    // Merging into this field would modify `Object.prototype`, and so every object of the process.
    if (name === '__proto__') continue;
    const existing = target[name];
    if (value === null || value === undefined) target[name] ??= value;
    else if (typeof value === 'string')
      target[name] = CHUNKED_FIELDS.has(name) && typeof existing === 'string' ? existing + value : value;
    else if (Array.isArray(value)) target[name] = mergeList(Array.isArray(existing) ? existing : [], value);
    else if (typeof value === 'object') {
      const inner = typeof existing === 'object' && existing !== null ? (existing as MutableJson) : {};
      mergeChunk(inner, value as JsonObject);
      target[name] = inner;
    } else target[name] = value;
  }
}

/** The members of each list by their `index`: searching the list for every chunk would take quadratic time. */
const membersByIndex = new WeakMap<unknown[], Map<number, MutableJson>>();

function mergeList(list: unknown[], chunks: readonly unknown[]): unknown[] {
  const byIndex = membersByIndex.get(list) ?? new Map<number, MutableJson>();
  membersByIndex.set(list, byIndex);
  for (const chunk of chunks) {
    const at = getIndex(chunk);
    const existing = at === undefined ? undefined : byIndex.get(at);
    if (existing) {
      mergeChunk(existing, chunk as JsonObject);
      continue;
    }
    const member = structuredClone(chunk);
    list.push(member);
    if (at !== undefined) byIndex.set(at, member as MutableJson);
  }
  return list;
}

function getIndex(value: unknown): number | undefined {
  const { index } = (value ?? {}) as { readonly index?: unknown };
  return typeof index === 'number' ? index : undefined;
}
