/**
 * Relays OpenAI's server-sent events with the identity of the call, and collects their usage and text. Only the first
 * chunk, and chunks with usage, an error, fields of Groq or hidden reasoning, are parsed before they are forwarded. The
 * id, the model, the provider and the time are replaced in the text of a chunk.
 */
import { type CompletionIdentity, formatSseEvent, type ReportedBill, UpstreamError } from '#application';
import type { Usage } from '#domain';
import { type ClassifyError, classifyCommonError, toErrorReport } from '../../http/error-rules.ts';
import { toLatin1Json } from '../../http/latin1.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { type BillFormat, mergeReportedBills, parseReportedBill } from '../../http/reported-bill.ts';
import { EventTranslator } from '../../http/stream-relay.ts';
import { parseInvoicedSearches } from './router-search.ts';
import { parseOpenAiUsage } from './usage.ts';

/** Maximum characters of buffered chunks. Their tokens are counted if no usage is reported. */
const MAX_BUFFERED_CHARACTERS = 256 * 1024;

/** Fields that providers send as null, which strict clients reject. */
const NULLS = /"(?:usage|system_fingerprint)":\s*null\s*,\s*|,\s*"(?:usage|system_fingerprint)":\s*null/g;
/** Searched in every chunk. `\s*` makes the search several times as fast as for a plain string. */
const ERROR = /"error"\s*:/;
const USAGE = /"usage":\s*[^n\s]/;
const FINISHED = /"finish_reason":\s*"/;
const CHOICES = '"choices"';
/** Fields with reasoning. */
const REASONING = /"reasoning(?:_content|_details)?":/;
/** Fields with generated text. */
const TEXTS = /"(?:content|reasoning|reasoning_content|refusal|name|arguments)":\s*"((?:[^"\\]|\\.)*)"/g;
/** Longer chunks are not matched, because the pattern could exhaust the stack of the regex engine. */
const MAX_MATCHED_CHARACTERS = 64 * 1024;
/** The name that some providers use for the reasoning. */
const REASONING_CONTENT = '"reasoning_content":';
/** The name that all clients of the gateway support. */
const REASONING_NAME = '"reasoning":';
const ID = /"id":\s*"(?:[^"\\]|\\.)*"/;
const MODEL = /"model":\s*"(?:[^"\\]|\\.)*"/;
/** A router names the provider that it has called. The name is removed before the gateway's own is inserted. */
const PROVIDER = /"provider":\s*"(?:[^"\\]|\\.)*"\s*,\s*|,\s*"provider":\s*"(?:[^"\\]|\\.)*"/;
/** Some providers increase this time while they generate. */
const CREATED = /"created":\s*[^\s,}]+/;
/** The field of a chunk or a completion that only Groq has. */
const GROQ_FIELD = '"x_groq"';

/** OpenAI reports an error next to the choices. A router reports it in the choice that failed. */
export interface ErrorHolder {
  readonly error?: unknown;
}

/**
 * What Groq adds to the first and the last chunk: https://console.groq.com/docs/api-reference#chat-create. The error says
 * why the stream was stopped early, although the finish reason may be `stop`.
 */
interface GroqFields extends ErrorHolder {
  readonly usage?: unknown;
}

/** The fields of Groq in a chunk or a completion, which clients do not get. */
export interface GroqFieldsHolder {
  readonly x_groq?: GroqFields | null;
}

interface Chunk extends ErrorHolder, GroqFieldsHolder {
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

/** The message that callers get for an error within a response, instead of the provider's own message. */
export const MESSAGE_INTERRUPTED = 'The provider ended the response early';

/** Replacements in the chunks of one completion. Outside generated text, each `text` occurs at most once per chunk. */
type Replacements = readonly (readonly [text: string | RegExp, instead: string])[];

/** The start of a chunk with its replacement, and the replacements in the rest of the chunk. */
interface ChunkPrefix {
  readonly upstreamPrefix: string;
  readonly gatewayPrefix: string;
  readonly replacements: Replacements;
}

/** For a chunk that already has the identity of the call. */
const UNCHANGED: ChunkPrefix = { upstreamPrefix: '', gatewayPrefix: '', replacements: [] };

export class ChatChunkTranslator extends EventTranslator {
  private readonly idJson: string;
  private readonly modelJson: string;
  private readonly createdJson: string;
  /** Its prefix is empty, so it fits any chunk. */
  private genericPrefix: ChunkPrefix | undefined;
  /** Fits chunks that start like the first one. Nearly all do. Then only the rest of the chunk is searched. */
  private firstChunkPrefix: ChunkPrefix | undefined;
  private reportedUsage: Usage | undefined;
  /** The usage among the fields of Groq. */
  private groqUsage: Usage | undefined;
  private hasGroqFields = false;
  private bill: ReportedBill = {};
  private searchCount = 0;
  private upstreamId: string | undefined;
  private buffered: string[] = [];
  private bufferedSize = 0;
  private text = '';
  private hasVisibleText = false;
  /** Bytes of text in the first `measuredCount` buffered chunks, and in all chunks before the buffered ones. */
  private bytes = 0;
  private measuredCount = 0;

  /** @param hidesReasoning whether the model's reasoning is left out */
  constructor(
    private readonly identity: CompletionIdentity,
    private readonly hidesReasoning = false,
    private readonly classifyError: ClassifyError = classifyCommonError,
    private readonly billFormat: BillFormat = {},
  ) {
    super();
    const { id, model, provider, created } = identity;
    this.idJson = `"id":${JSON.stringify(id)}`;
    this.modelJson = `"model":${JSON.stringify(model)},"provider":${JSON.stringify(provider)}`;
    this.createdJson = `"created":${created}`;
  }

  usage(): Usage | undefined {
    return this.reportedUsage ?? this.groqUsage;
  }

  vendorId(): string | undefined {
    return this.upstreamId;
  }

  reportedBill(): ReportedBill {
    return this.bill;
  }

  /** Number of searches that a router invoices. */
  get invoiced(): number {
    return this.searchCount;
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

  protected translateEvent(json: string): string {
    if (!json.startsWith('{') || !json.endsWith('}')) throw notJsonError();
    const prefix = this.findPrefix(json);
    if (prefix === undefined) return this.handleFirstChunk(json);
    const rest = json.slice(prefix.upstreamPrefix.length);
    if (ERROR.test(rest) || USAGE.test(rest) || (this.hasGroqFields && rest.includes(GROQ_FIELD)))
      return this.handleChunk(json);
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
    const removed = PROVIDER.test(json) ? [[PROVIDER, ''] as const] : [];
    const all: Replacements = [...removed, ...renamed, [CREATED, this.createdJson], ...nulls];
    const upstreamPrefix = json.slice(0, Math.max(json.indexOf(CHOICES), 0));
    const gatewayPrefix = applyReplacements(upstreamPrefix, all);
    this.genericPrefix = { upstreamPrefix: '', gatewayPrefix: '', replacements: all };
    this.hasGroqFields = json.includes(GROQ_FIELD);
    if (!ERROR.test(gatewayPrefix) && !USAGE.test(gatewayPrefix) && !upstreamPrefix.includes(GROQ_FIELD))
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
    const { x_groq } = chunk;
    const failed = [chunk, x_groq, ...(chunk.choices ?? [])].find((part) => part?.error);
    if (failed)
      throw this.classifyError(toErrorReport(failed)) ?? new UpstreamError('upstream_error', MESSAGE_INTERRUPTED);
    this.reportedUsage = parseOpenAiUsage(chunk.usage) ?? this.reportedUsage;
    this.groqUsage = parseOpenAiUsage(x_groq?.usage) ?? this.groqUsage;
    this.bill = mergeReportedBills(this.bill, parseReportedBill(chunk, this.billFormat));
    this.searchCount = parseInvoicedSearches(chunk.usage) ?? this.searchCount;
    if (!chunk.choices?.length) return ''; // clients read the first choice of every chunk
    if (chunk.usage || x_groq !== undefined) return this.formatParsedChunk(chunk);
    this.buffer(json);
    const prefix = this.findPrefix(json) as ChunkPrefix;
    return this.formatChunk(json.slice(prefix.upstreamPrefix.length), prefix);
  }

  /** Formats a chunk again without the fields that clients do not get. */
  private formatParsedChunk({ usage, x_groq, ...rest }: Chunk): string {
    const { system_fingerprint } = rest as { readonly system_fingerprint?: unknown };
    const json = toLatin1Json({
      ...rest,
      ...this.identity,
      ...(system_fingerprint === null ? { system_fingerprint: undefined } : {}),
    });
    this.buffer(json);
    return this.formatChunk(json, UNCHANGED);
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

  /** Replaces the buffered chunks with their text, which is about a tenth of their size. */
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
  return new UpstreamError('upstream_error', 'The provider sent a chunk that is not JSON', {
    cause,
    hasOpenCost: true,
  });
}

/**
 * Removes the reasoning of a chunk. An otherwise empty chunk is still forwarded: it shows that the model is working.
 */
function hideReasoning(json: string): string {
  const chunk = parse(json);
  const choices = (chunk.choices ?? []).map((choice) => ({ ...choice, delta: omitReasoning(choice.delta ?? {}) }));
  return toLatin1Json({ ...chunk, choices });
}

/**
 * Renames `reasoning_content` to `reasoning`, the name that all clients of the gateway support. If a message has both
 * fields, its `reasoning` stays.
 */
export function normalizeReasoningField(message: Delta): Delta {
  if (message.reasoning_content === undefined) return message;
  const { reasoning_content, ...rest } = message;
  return { reasoning: reasoning_content, ...rest };
}

/** Removes the reasoning from a message or a delta, whatever the provider calls it. */
export function omitReasoning({ reasoning, reasoning_content, reasoning_details, ...rest }: Delta): Delta {
  return rest;
}

/** Returns the generated text of a forwarded chunk; '' if the chunk is not valid JSON. */
function extractText(json: string, part: (delta: Delta) => Delta = (delta) => delta): string {
  try {
    return (parse(json).choices ?? []).map(({ delta }) => (delta ? getGeneratedText(part(delta)) : '')).join('');
  } catch {
    return ''; // invalid JSON
  }
}

/** Returns the generated text of a message or a delta, including function calls. */
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

/** Returns an upper bound of the bytes of the texts in a chunk: escapes are counted as written. */
function countTextBytes(json: string): number {
  if (json.length > MAX_MATCHED_CHARACTERS) return json.length;
  let bytes = 0;
  TEXTS.lastIndex = 0;
  for (let match = TEXTS.exec(json); match; match = TEXTS.exec(json)) bytes += (match[1] as string).length;
  return bytes;
}
