/** The events of an answer as the answer in one piece that they come to. */
import { NativeOutput } from '../responses/native-output.ts';
import type { AnswerReceiver } from '../vocabulary/answers.ts';
import type { AnswerIdentity } from '../vocabulary/providers.ts';
import { parsedEvent, sseDataIn } from '../vocabulary/sse.ts';
import type { Thing } from '../vocabulary/things.ts';
import type { SearchNote } from '../vocabulary/web-search.ts';

type Fields = Record<string, unknown>;

/** Texts that come in pieces; all others come at once. */
const IN_PIECES: ReadonlySet<string> = new Set([
  'content',
  'reasoning',
  'refusal',
  'arguments',
  'text',
  'summary',
  'data',
  'input',
]);

interface Choice {
  readonly message: Fields;
  readonly logprobs: Fields;
  readonly rest: Fields;
}

export class Collector implements AnswerReceiver {
  private readonly native: NativeOutput | undefined;
  private readonly choices: Choice[] = [];
  private head: Thing = {};
  private noted: SearchNote[] = [];

  constructor(
    language: 'chat' | 'responses',
    private readonly identity: AnswerIdentity,
  ) {
    this.native = language === 'responses' ? new NativeOutput(true) : undefined;
  }

  /** @throws UpstreamFailure when an event cannot be read */
  write(events: Uint8Array): undefined {
    for (const data of sseDataIn(events)) {
      const event = parsedEvent(data);
      if (this.native) this.native.accept(event);
      else this.chunk(event);
    }
  }

  searched(search: SearchNote): undefined {
    if (search.state !== 'searching') this.noted.push(search);
  }

  get searches(): readonly SearchNote[] {
    return this.noted;
  }

  get body(): Thing {
    const { native, head, identity, choices } = this;
    if (native) {
      const details = native.cutShort === undefined ? {} : { incomplete_details: { reason: native.cutShort } };
      return { object: 'response', output: native.items, ...details };
    }
    return { ...head, ...identity, object: 'chat.completion', choices: choices.map(choiceOf) };
  }

  private chunk({ choices, obfuscation: _, ...head }: Thing): void {
    this.head = { ...head, ...this.head };
    for (const piece of (choices ?? []) as readonly Thing[]) {
      const { index = 0, delta = {}, logprobs, ...rest } = piece as { readonly index?: number } & Thing;
      this.choices[index] ??= { message: {}, logprobs: {}, rest: {} };
      const choice = this.choices[index] as Choice;
      add(choice.message, delta as Thing);
      if (logprobs) add(choice.logprobs, logprobs as Thing);
      for (const [name, value] of Object.entries(rest)) if (value !== null) choice.rest[name] = value;
    }
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
function withoutIndex({ index: _, ...call }: Thing): Thing {
  return call;
}

/** Adds a piece: texts go on, members of lists are found by their index, and whatever else there is comes once. */
function add(to: Fields, piece: Thing): void {
  for (const [name, value] of Object.entries(piece)) {
    const known = to[name];
    if (value === null || value === undefined) to[name] ??= value;
    else if (typeof value === 'string')
      to[name] = IN_PIECES.has(name) && typeof known === 'string' ? known + value : value;
    else if (Array.isArray(value)) to[name] = addedList(Array.isArray(known) ? known : [], value);
    else if (typeof value === 'object') {
      const inner = typeof known === 'object' && known !== null ? (known as Fields) : {};
      add(inner, value as Thing);
      to[name] = inner;
    } else to[name] = value;
  }
}

function addedList(list: unknown[], pieces: readonly unknown[]): unknown[] {
  for (const piece of pieces) {
    const at = indexIn(piece);
    const known = at === undefined ? undefined : list.find((each) => indexIn(each) === at);
    if (known === undefined) list.push(structuredClone(piece));
    else add(known as Fields, piece as Thing);
  }
  return list;
}

function indexIn(value: unknown): number | undefined {
  const { index } = (value ?? {}) as { readonly index?: unknown };
  return typeof index === 'number' ? index : undefined;
}
