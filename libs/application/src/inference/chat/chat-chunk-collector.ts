/** The chunks of a chat as the answer in one piece that they come to. */
import { UpstreamError } from '../../errors.ts';
import type { JsonObject } from '../../wire/json-object.ts';

type Fields = Record<string, unknown>;

/** Texts that come in pieces; all others come at once. */
const IN_PIECES: ReadonlySet<string> = new Set([
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

/** OpenAI's own limit of `n`. */
const MOST_CHOICES = 128;

interface Choice {
  readonly message: Fields;
  readonly logprobs: Fields;
  readonly rest: Fields;
}

export class ChatChunkCollector {
  private readonly choices: Choice[] = [];
  private head: JsonObject = {};
  private usage: unknown;

  /** @throws UpstreamError for a choice that there cannot be */
  accept({ choices, obfuscation: _, usage, ...head }: JsonObject): void {
    this.head = { ...head, ...this.head };
    this.usage = usage ?? this.usage;
    for (const piece of (choices ?? []) as readonly JsonObject[]) {
      const { index = 0, delta = {}, logprobs, ...rest } = piece as { readonly index?: number } & JsonObject;
      if (!(Number.isInteger(index) && index >= 0 && index < MOST_CHOICES))
        throw new UpstreamError('upstream_error', 'The upstream sent a choice that there cannot be');
      this.choices[index] ??= { message: {}, logprobs: {}, rest: {} };
      const choice = this.choices[index] as Choice;
      add(choice.message, delta as JsonObject);
      if (logprobs) add(choice.logprobs, logprobs as JsonObject);
      for (const [name, value] of Object.entries(rest)) if (value !== null) choice.rest[name] = value;
    }
  }

  get body(): JsonObject {
    const { head, choices, usage } = this;
    const used = usage === undefined ? {} : { usage };
    // Not map: it would keep the places of choices that never came.
    return { ...head, object: 'chat.completion', choices: choices.flatMap(choiceOf), ...used };
  }
}

function choiceOf({ message, logprobs, rest }: Choice, index: number): object {
  const { content = null, refusal = null, annotations = [], ...said } = message;
  const calls = Array.isArray(said.tool_calls) ? { tool_calls: said.tool_calls.map(withoutIndex) } : {};
  return {
    index,
    message: {
      role: 'assistant',
      content: content === '' && 'tool_calls' in said ? null : content,
      refusal,
      annotations,
      ...said,
      ...calls,
    },
    logprobs: Object.keys(logprobs).length > 0 ? logprobs : null,
    finish_reason: null,
    ...rest,
  };
}

/** Where a call stands is said of pieces only. */
function withoutIndex({ index: _, ...call }: JsonObject): JsonObject {
  return call;
}

/** Adds a piece: texts go on, members of lists are found by their index, and whatever else there is comes once. */
function add(to: Fields, piece: JsonObject): void {
  for (const [name, value] of Object.entries(piece)) {
    // As a name of its own it would change all objects that there are.
    if (name === '__proto__') continue;
    const known = to[name];
    if (value === null || value === undefined) to[name] ??= value;
    else if (typeof value === 'string')
      to[name] = IN_PIECES.has(name) && typeof known === 'string' ? known + value : value;
    else if (Array.isArray(value)) to[name] = addedList(Array.isArray(known) ? known : [], value);
    else if (typeof value === 'object') {
      const inner = typeof known === 'object' && known !== null ? (known as Fields) : {};
      add(inner, value as JsonObject);
      to[name] = inner;
    } else to[name] = value;
  }
}

/** The members of a list by their index: to look through it for each piece would take long. */
const members = new WeakMap<unknown[], Map<number, Fields>>();

function addedList(list: unknown[], pieces: readonly unknown[]): unknown[] {
  const byIndex = members.get(list) ?? new Map<number, Fields>();
  members.set(list, byIndex);
  for (const piece of pieces) {
    const at = indexIn(piece);
    const known = at === undefined ? undefined : byIndex.get(at);
    if (known) {
      add(known, piece as JsonObject);
      continue;
    }
    const member = structuredClone(piece);
    list.push(member);
    if (at !== undefined) byIndex.set(at, member as Fields);
  }
  return list;
}

function indexIn(value: unknown): number | undefined {
  const { index } = (value ?? {}) as { readonly index?: unknown };
  return typeof index === 'number' ? index : undefined;
}
