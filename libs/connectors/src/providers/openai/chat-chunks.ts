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
const MAX_BUFFERED_CHARACTERS = 256 * 1024;

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
const MAX_MATCHED_CHARACTERS = 64 * 1024;
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
export const MESSAGE_INTERRUPTED = 'The upstream broke off the answer';

/** What is in the chunks of one answer, each time at most once outside of texts, and what is sent instead. */
type Replacements = readonly (readonly [text: string | RegExp, instead: string])[];

/** How a chunk begins, what is sent instead, and what is replaced in the rest of it. */
interface ChunkPrefix {
  readonly upstreamPrefix: string;
  readonly gatewayPrefix: string;
  readonly replacements: Replacements;
}

export class ChatChunkTranslator extends EventTranslator {
  private readonly idJson: string;
  private readonly modelJson: string;
  private readonly createdJson: string;
  /** Any chunk, and one that begins as the first one does: so do nearly all, and only what is behind it is looked at. */
  private genericPrefix: ChunkPrefix | undefined;
  private firstChunkPrefix: ChunkPrefix | undefined;
  private reportedUsage: Usage | undefined;
  private upstreamId: string | undefined;
  private buffered: string[] = [];
  private bufferedSize = 0;
  private text = '';
  private hasVisibleText = false;
  /** Bytes of text in so many of the kept chunks, and in all before them. */
  private bytes = 0;
  private measuredCount = 0;

  /** @param hidesReasoning nothing of the model's reasoning is passed on */
  constructor(
    { id, model, provider, created }: CompletionIdentity,
    private readonly hidesReasoning = false,
  ) {
    super();
    this.idJson = `"id":${JSON.stringify(id)}`;
    this.modelJson = `"model":${JSON.stringify(model)},"provider":${JSON.stringify(provider)}`;
    this.createdJson = `"created":${created}`;
  }

  usage(): Usage | undefined {
    return this.reportedUsage;
  }

  vendorId(): string | undefined {
    return this.upstreamId;
  }

  getDeliveredText(): string {
    this.foldBuffered();
    return this.text;
  }

  getMaxGeneratedTokens(): number {
    for (; this.measuredCount < this.buffered.length; this.measuredCount++)
      this.bytes += countTextBytes(this.buffered[this.measuredCount] as string);
    return this.bytes;
  }

  hasForwarded(): boolean {
    this.foldBuffered();
    return this.hidesReasoning ? this.hasVisibleText : this.text !== '';
  }

  /** What is passed on of one chunk. */
  protected translateEvent(json: string): string {
    if (!json.startsWith('{') || !json.endsWith('}')) throw notJsonError();
    const prefix = this.findPrefix(json);
    if (prefix === undefined) return this.handleFirstChunk(json);
    const rest = json.slice(prefix.upstreamPrefix.length);
    if (ERROR.test(rest) || USAGE.test(rest)) return this.handleChunk(json);
    this.buffer(json);
    return this.formatChunk(rest, prefix);
  }

  private handleFirstChunk(json: string): string {
    const names = [ID.exec(json)?.[0], MODEL.exec(json)?.[0]];
    const replacements = [this.idJson, this.modelJson];
    const renamed = names.flatMap((name, i) =>
      name === undefined ? [] : [[name, replacements[i] as string] as const],
    );
    const nulls = (json.match(NULLS) ?? []).map((field) => [field, ''] as const);
    const all: Replacements = [...renamed, [CREATED, this.createdJson], ...nulls];
    const upstreamPrefix = json.slice(0, Math.max(json.indexOf(CHOICES), 0));
    const gatewayPrefix = applyReplacements(upstreamPrefix, all);
    this.genericPrefix = { upstreamPrefix: '', gatewayPrefix: '', replacements: all };
    if (!ERROR.test(gatewayPrefix) && !USAGE.test(gatewayPrefix))
      this.firstChunkPrefix = {
        upstreamPrefix,
        gatewayPrefix,
        replacements: all.filter(([what]) => !hasMatch(upstreamPrefix, what)),
      };
    return this.handleChunk(json);
  }

  private handleChunk(json: string): string {
    const chunk = parse(json);
    this.upstreamId ??= parseProviderRequestId(chunk);
    const failed = [chunk, ...(chunk.choices ?? [])].find(({ error }) => error);
    if (failed) throw new UpstreamError('upstream_error', MESSAGE_INTERRUPTED);
    this.reportedUsage = parseOpenAiUsage(chunk.usage) ?? this.reportedUsage;
    if (!chunk.choices?.length) return ''; // clients look into the first choice of every chunk
    const { usage, ...rest } = chunk;
    const forwarded = usage ? decodeLatin1(Buffer.from(JSON.stringify(rest))) : json;
    this.buffer(forwarded);
    const prefix = this.findPrefix(forwarded) as ChunkPrefix;
    return this.formatChunk(forwarded.slice(prefix.upstreamPrefix.length), prefix);
  }

  private findPrefix(json: string): ChunkPrefix | undefined {
    const { genericPrefix, firstChunkPrefix } = this;
    return firstChunkPrefix && json.slice(0, firstChunkPrefix.upstreamPrefix.length) === firstChunkPrefix.upstreamPrefix
      ? firstChunkPrefix
      : genericPrefix;
  }

  private formatChunk(rest: string, { gatewayPrefix, replacements }: ChunkPrefix): string {
    this.hasFinishReason ||= FINISHED.test(rest);
    const renamed = gatewayPrefix + applyReplacements(rest, replacements);
    return formatSseEvent(REASONING.test(rest) ? this.normalizeReasoning(renamed) : renamed);
  }

  private normalizeReasoning(json: string): string {
    const normalized = json.includes(REASONING_NAME) ? json : json.replaceAll(REASONING_CONTENT, REASONING_NAME);
    return this.hidesReasoning ? hideReasoning(normalized) : normalized;
  }

  private buffer(json: string): void {
    this.buffered.push(json);
    this.bufferedSize += json.length;
    if (this.bufferedSize > MAX_BUFFERED_CHARACTERS) this.foldBuffered();
  }

  /** Chunks are about ten times as long as their text. */
  private foldBuffered(): void {
    for (const json of this.buffered) {
      this.text += extractText(json);
      if (this.hidesReasoning) this.hasVisibleText ||= extractText(json, omitReasoning) !== '';
    }
    this.getMaxGeneratedTokens();
    this.buffered = [];
    this.bufferedSize = 0;
    this.measuredCount = 0;
  }
}

function hasMatch(json: string, what: string | RegExp): boolean {
  return typeof what === 'string' ? json.includes(what) : what.test(json);
}

function applyReplacements(json: string, replacements: Replacements): string {
  let out = json;
  for (const [what, instead] of replacements) out = out.replace(what, () => instead);
  return out;
}

function parse(json: string): Chunk {
  try {
    return JSON.parse(Buffer.from(json, 'latin1').toString('utf8')) as Chunk;
  } catch (cause) {
    throw notJsonError(cause);
  }
}

function notJsonError(cause?: unknown): UpstreamError {
  return new UpstreamError('upstream_error', 'The upstream sent a chunk that is not JSON', { cause });
}

/** A chunk without its reasoning. One that has nothing else goes on all the same: it shows that the model is at it. */
function hideReasoning(json: string): string {
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
function extractText(json: string, part: (delta: Delta) => Delta = (delta) => delta): string {
  try {
    return (parse(json).choices ?? []).map(({ delta }) => (delta ? getGeneratedText(part(delta)) : '')).join('');
  } catch {
    return '';
  }
}

/** The generated text of a message or of a piece of one, tool calls included. */
export function getGeneratedText({ content, reasoning, reasoning_content, refusal, tool_calls }: Delta): string {
  const texts = [content, reasoning ?? reasoning_content, refusal].filter((text) => typeof text === 'string');
  return texts.join('') + (Array.isArray(tool_calls) ? tool_calls.map(getCallText).join('') : '');
}

function getCallText(
  call: { readonly function?: { readonly name?: unknown; readonly arguments?: unknown } } | null,
): string {
  const { name = '', arguments: args = '' } = call?.function ?? {};
  return `${name}${args}`;
}

/** The bytes of the texts in a chunk, or a little more where they have escapes. */
function countTextBytes(json: string): number {
  if (json.length > MAX_MATCHED_CHARACTERS) return json.length;
  let bytes = 0;
  TEXTS.lastIndex = 0;
  for (let match = TEXTS.exec(json); match; match = TEXTS.exec(json)) bytes += (match[1] as string).length;
  return bytes;
}
