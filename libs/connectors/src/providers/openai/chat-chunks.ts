/**
 * OpenAI's server-sent events on their way through: whole events are passed on as bytes, renamed to our identity, and
 * what the gateway needs to know is picked out as it passes. Only the first chunk and those that carry usage or an
 * error are parsed; in all others the two names are replaced in place.
 */
import { type CompletionIdentity, formatSseEvent, UpstreamError } from '#application';
import type { Usage } from '#domain';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { decodeLatin1, EventTranslator } from '../../http/stream-relay.ts';
import { parseOpenAiUsage } from './usage.ts';

/** Characters of passed-on chunks that are kept as they are, for counting tokens if no usage comes. */
const KEPT_CHUNKS = 256 * 1024;

/** Fields that OpenAI sends as null on every chunk, which strict clients refuse. */
const NULLS = /"(?:usage|system_fingerprint)":\s*null\s*,\s*|,\s*"(?:usage|system_fingerprint)":\s*null/g;
/** Looked for in every chunk: a pattern that is more than a text is found several times as fast as one. */
const ERROR = /"error"\s*:/;
const USAGE = /"usage":\s*[^n\s]/;
const FINISHED = /"finish_reason":\s*"/;
const CHOICES = '"choices"';
/** Fields that have a part of the reasoning, or that name it. */
const REASONING = /"reasoning(?:_content|_details)?":/;
/** Fields with what was generated. */
const TEXTS = /"(?:content|reasoning|reasoning_content|refusal|name|arguments)":\s*"((?:[^"\\]|\\.)*)"/g;
/** A pattern has no stack for the longest texts. */
const LONGEST_MATCHED = 64 * 1024;
/** What some call the reasoning, and what all our clients know it by. */
const REASONING_CONTENT = '"reasoning_content":';
const REASONING_NAME = '"reasoning":';
const ID = /"id":\s*"(?:[^"\\]|\\.)*"/;
const MODEL = /"model":\s*"(?:[^"\\]|\\.)*"/;
/** Some count on while they answer. */
const CREATED = /"created":\s*[^\s,}]+/;

/** OpenAI reports an error beside the choices, a router in the one that failed. */
export interface ErrorHolder {
  readonly error?: unknown;
}

interface Chunk extends ErrorHolder {
  readonly choices?: readonly Choice[];
  readonly usage?: unknown;
}

interface Choice extends ErrorHolder {
  readonly delta?: Delta;
  readonly finish_reason?: string | null;
}

export interface Delta {
  readonly content?: unknown;
  readonly reasoning?: unknown;
  readonly reasoning_content?: unknown;
  readonly reasoning_details?: unknown;
  readonly refusal?: unknown;
  readonly tool_calls?: unknown;
}

/** What is said of an error within an answer, whatever the upstream says. */
export const BROKEN_OFF = 'The upstream broke off the answer';

/** What is in the chunks of one answer, each time at most once outside of texts, and what is sent instead. */
type Replacements = readonly (readonly [text: string | RegExp, instead: string])[];

/** How a chunk begins, what is sent instead, and what is replaced in the rest of it. */
interface Beginning {
  readonly theirs: string;
  readonly ours: string;
  readonly behind: Replacements;
}

export class ChatChunks extends EventTranslator {
  private readonly ourId: string;
  private readonly ourModel: string;
  private readonly ourCreated: string;
  /** Any chunk, and one that begins as the first one does: so do nearly all, and only what is behind it is looked at. */
  private anyhow: Beginning | undefined;
  private alike: Beginning | undefined;
  private reported: Usage | undefined;
  private upstreamId: string | undefined;
  private kept: string[] = [];
  private keptSize = 0;
  private text = '';
  private shown = false;
  /** Bytes of text in so many of the kept chunks, and in all before them. */
  private bytes = 0;
  private measured = 0;

  /** @param hidesReasoning nothing of the model's reasoning is passed on */
  constructor(
    { id, model, provider, created }: CompletionIdentity,
    private readonly hidesReasoning = false,
  ) {
    super();
    this.ourId = `"id":${JSON.stringify(id)}`;
    this.ourModel = `"model":${JSON.stringify(model)},"provider":${JSON.stringify(provider)}`;
    this.ourCreated = `"created":${created}`;
  }

  usage(): Usage | undefined {
    return this.reported;
  }

  vendorId(): string | undefined {
    return this.upstreamId;
  }

  deliveredText(): string {
    this.fold();
    return this.text;
  }

  generatedAtMost(): number {
    for (; this.measured < this.kept.length; this.measured++)
      this.bytes += textBytes(this.kept[this.measured] as string);
    return this.bytes;
  }

  hasTold(): boolean {
    this.fold();
    return this.hidesReasoning ? this.shown : this.text !== '';
  }

  /** What is passed on of one chunk. */
  protected handle(json: string): string {
    if (!json.startsWith('{') || !json.endsWith('}')) throw notJson();
    const beginning = this.beginningOf(json);
    if (beginning === undefined) return this.first(json);
    const rest = json.slice(beginning.theirs.length);
    if (ERROR.test(rest) || USAGE.test(rest)) return this.parsed(json);
    this.keep(json);
    return this.forward(rest, beginning);
  }

  private first(json: string): string {
    const names = [ID.exec(json)?.[0], MODEL.exec(json)?.[0]];
    const instead = [this.ourId, this.ourModel];
    const renamed = names.flatMap((name, i) => (name === undefined ? [] : [[name, instead[i] as string] as const]));
    const nulls = (json.match(NULLS) ?? []).map((field) => [field, ''] as const);
    const all: Replacements = [...renamed, [CREATED, this.ourCreated], ...nulls];
    const theirs = json.slice(0, Math.max(json.indexOf(CHOICES), 0));
    const ours = replaced(theirs, all);
    this.anyhow = { theirs: '', ours: '', behind: all };
    if (!ERROR.test(ours) && !USAGE.test(ours))
      this.alike = { theirs, ours, behind: all.filter(([what]) => !isIn(theirs, what)) };
    return this.parsed(json);
  }

  private parsed(json: string): string {
    const chunk = parse(json);
    this.upstreamId ??= parseProviderRequestId(chunk);
    const failed = [chunk, ...(chunk.choices ?? [])].find(({ error }) => error);
    if (failed) throw new UpstreamError('upstream_error', BROKEN_OFF);
    this.reported = parseOpenAiUsage(chunk.usage) ?? this.reported;
    if (!chunk.choices?.length) return ''; // clients look into the first choice of every chunk
    const { usage, ...rest } = chunk;
    const passed = usage ? decodeLatin1(Buffer.from(JSON.stringify(rest))) : json;
    this.keep(passed);
    const beginning = this.beginningOf(passed) as Beginning;
    return this.forward(passed.slice(beginning.theirs.length), beginning);
  }

  private beginningOf(json: string): Beginning | undefined {
    const { anyhow, alike } = this;
    return alike && json.slice(0, alike.theirs.length) === alike.theirs ? alike : anyhow;
  }

  private forward(rest: string, { ours, behind }: Beginning): string {
    this.finished ||= FINISHED.test(rest);
    const renamed = ours + replaced(rest, behind);
    return formatSseEvent(REASONING.test(rest) ? this.reasoned(renamed) : renamed);
  }

  private reasoned(json: string): string {
    const named = json.includes(REASONING_NAME) ? json : json.replaceAll(REASONING_CONTENT, REASONING_NAME);
    return this.hidesReasoning ? visible(named) : named;
  }

  private keep(json: string): void {
    this.kept.push(json);
    this.keptSize += json.length;
    if (this.keptSize > KEPT_CHUNKS) this.fold();
  }

  /** Chunks are about ten times as long as their text. */
  private fold(): void {
    for (const json of this.kept) {
      this.text += textIn(json);
      if (this.hidesReasoning) this.shown ||= textIn(json, omitReasoning) !== '';
    }
    this.generatedAtMost();
    this.kept = [];
    this.keptSize = 0;
    this.measured = 0;
  }
}

function isIn(json: string, what: string | RegExp): boolean {
  return typeof what === 'string' ? json.includes(what) : what.test(json);
}

function replaced(json: string, replacements: Replacements): string {
  let out = json;
  for (const [what, instead] of replacements) out = out.replace(what, () => instead);
  return out;
}

function parse(json: string): Chunk {
  try {
    return JSON.parse(Buffer.from(json, 'latin1').toString('utf8')) as Chunk;
  } catch (cause) {
    throw notJson(cause);
  }
}

function notJson(cause?: unknown): UpstreamError {
  return new UpstreamError('upstream_error', 'The upstream sent a chunk that is not JSON', { cause });
}

/** A chunk without its reasoning. One that has nothing else goes on all the same: it shows that the model is at it. */
function visible(json: string): string {
  const chunk = parse(json);
  const choices = (chunk.choices ?? []).map((choice) => ({ ...choice, delta: omitReasoning(choice.delta ?? {}) }));
  return decodeLatin1(Buffer.from(JSON.stringify({ ...chunk, choices })));
}

/** A message with its reasoning under the one name that all our clients know. */
export function normalizeReasoningField(message: Delta): Delta {
  if (message.reasoning_content === undefined) return message;
  const { reasoning_content, ...rest } = message;
  return { reasoning: reasoning_content, ...rest };
}

/** A message, or a piece of one, without the text that the model reasoned with, whatever the upstream calls it. */
export function omitReasoning({ reasoning, reasoning_content, reasoning_details, ...rest }: Delta): Delta {
  return rest;
}

/** The text of a chunk that was passed on unread; one that cannot be read has none that could be counted. */
function textIn(json: string, part: (delta: Delta) => Delta = (delta) => delta): string {
  try {
    return (parse(json).choices ?? []).map(({ delta }) => (delta ? getGeneratedText(part(delta)) : '')).join('');
  } catch {
    return '';
  }
}

/** The generated text of a message or of a piece of one, tool calls included. */
export function getGeneratedText({ content, reasoning, reasoning_content, refusal, tool_calls }: Delta): string {
  const texts = [content, reasoning ?? reasoning_content, refusal].filter((each) => typeof each === 'string');
  return texts.join('') + (Array.isArray(tool_calls) ? tool_calls.map(callIn).join('') : '');
}

function callIn(
  call: { readonly function?: { readonly name?: unknown; readonly arguments?: unknown } } | null,
): string {
  const { name = '', arguments: given = '' } = call?.function ?? {};
  return `${name}${given}`;
}

/** The bytes of the texts in a chunk, or a little more where they have escapes. */
function textBytes(json: string): number {
  if (json.length > LONGEST_MATCHED) return json.length;
  let bytes = 0;
  TEXTS.lastIndex = 0;
  for (let found = TEXTS.exec(json); found; found = TEXTS.exec(json)) bytes += (found[1] as string).length;
  return bytes;
}
