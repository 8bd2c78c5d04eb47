/**
 * Composes the output for a chat request: generated text or tool calls, truncated at the token limit, with token
 * counts.
 */
import { randomBytes } from 'node:crypto';
import { countVisibleTokens, type Directive, type Fault, type ReportedBillDirective } from './directive.ts';
import type { SandboxModel } from './model.ts';
import { createPicker, createSample } from './schemas.ts';
import { findTokenStarts, generateProse } from './tokens.ts';
import { createArguments, selectTool, type Toolbox } from './tools.ts';

/** A request after parsing, whatever the protocol. */
export interface SandboxModelRequest<M extends SandboxModel = SandboxModel> {
  readonly model: M;
  /** Number of choices. */
  readonly n: number;
  /** Maximum completion tokens of one choice. */
  readonly limit: number;
  readonly promptTokens: number;
  /** Those of the prompt that are written to a cache for an hour. */
  readonly hourCachedTokens?: number;
  /** Whether the model may reason. */
  readonly reasons: boolean;
  readonly toolbox: Toolbox;
  /**
   * The required structure of the completion. It is ignored if a tool is called, or if a directive sets the text or the
   * number of tokens.
   */
  readonly format: OutputFormat | undefined;
  /** Input tokens that each search of the provider adds. */
  readonly tokensPerSearch?: number;
}

export interface OutputFormat {
  readonly schema: unknown;
  /** The same schema and seed result in the same completion. */
  readonly seed: string;
}

/** The schema for a request that accepts any JSON object. */
export const ANY_OBJECT = {
  type: 'object',
  properties: { answer: { type: 'string' }, count: { type: 'integer' }, certain: { type: 'boolean' } },
  required: ['answer'],
};

export interface SandboxModelOutput<M extends SandboxModel = SandboxModel> {
  /** Unique, without the prefix of the provider. */
  readonly serial: string;
  readonly created: number;
  readonly model: M;
  /** Number of choices; each has the same text and the same reasoning. */
  readonly n: number;
  readonly text: string;
  /** The called tool; the text is then its arguments. */
  readonly tool: string | undefined;
  /** Whether the tool takes plain text instead of JSON. */
  readonly takesText: boolean;
  /** Number of calls of the tool, all with the same arguments; 0 without a call. */
  readonly calls: number;
  /** Web searches that the provider ran before the completion. */
  readonly searches: readonly ProviderSearch[];
  /** Visible tokens of one choice: of its text, or of all its calls together. */
  readonly visible: number;
  /** Reasoning tokens of one choice. */
  readonly reasoning: number;
  readonly finish: 'end' | 'length' | 'tool';
  readonly input: number;
  readonly cached: number;
  /** Tokens written to the cache for an hour. `input` does not include them. */
  readonly hourCacheWrites: number;
  readonly reportedBill: ReportedBillDirective;
  /** Content chunks of a stream, for one choice or one call. */
  readonly chunks: readonly TextChunk[];
}

/** A web search that the provider runs. A failed search has no line on the bill, but adds input tokens. */
export interface ProviderSearch {
  readonly query: string;
  readonly failed: boolean;
}

/** The part of the text in one content chunk. */
export interface TextChunk {
  /** As a JSON string. */
  readonly json: string;
  readonly tokens: number;
}

const DEFAULT_MAX_CHUNKS = 64;
const DEFAULT_TOKENS_PER_SEARCH = 200;

/** The random part of the ids of this process. A counter follows it, which is cheaper than random ids. */
const RUN = randomBytes(10).toString('hex');
let outputCount = 0;

/** @throws InvalidDirectiveError under the conditions of `selectTool` */
export function composeOutput<M extends SandboxModel>(
  request: SandboxModelRequest<M>,
  directive: Directive,
  fault: Fault | undefined,
): SandboxModelOutput<M> {
  const chosen = selectTool(request.toolbox, directive.tool, directive.toolTimes);
  const tool = chosen?.maxProviderUses === undefined ? chosen : undefined;
  const searches =
    chosen?.maxProviderUses === undefined
      ? []
      : createProviderSearches(Math.min(directive.toolTimes, chosen.maxProviderUses), directive);
  // If the directive names a tool and none is called, its text is ignored: it was meant for the tool.
  const directiveText = directive.tool === undefined || chosen ? directive.text : undefined;
  const explicitText =
    directiveText ?? (tool ? createArguments(tool) : createStructuredText(request.format, directive));
  const { text, starts } =
    explicitText === undefined ? generateText(countVisibleTokens(directive)) : toTokenizedText(explicitText);
  const requestedReasoning = request.reasons ? directive.reasoning : 0;
  const reasoning = Math.min(requestedReasoning, request.limit);
  const remainingTokens = request.limit - reasoning;
  const requestedCalls = tool && request.toolbox.allowsParallelCalls ? directive.tools : 1;
  // Calls that exceed the limit are left out, except the first one.
  const copies = Math.max(1, Math.min(requestedCalls, Math.floor(remainingTokens / Math.max(1, starts.length))));
  const visible = Math.min(starts.length, remainingTokens);
  const complete = visible === starts.length;
  const isWithinLimit = complete && copies === requestedCalls && reasoning === requestedReasoning;
  const end = complete ? text.length : (starts[visible] as number);
  const cached = fault === 'cached' ? Math.floor(request.promptTokens / 2) : 0;
  // What is read from a cache is not written again.
  const hourWrites = cached > 0 ? 0 : (request.hourCachedTokens ?? 0);
  const chunks = Math.min(directive.chunks ?? DEFAULT_MAX_CHUNKS, visible);
  return {
    serial: `${RUN}${(++outputCount).toString(16).padStart(9, '0')}`,
    created: Math.floor(Date.now() / 1000),
    model: request.model,
    n: request.n,
    text: complete ? text : text.slice(0, end),
    tool: tool?.name,
    takesText: tool !== undefined && tool.schema === undefined,
    calls: tool ? copies : 0,
    searches,
    visible: copies * visible,
    reasoning,
    finish: !isWithinLimit ? 'length' : tool ? 'tool' : 'end',
    input: request.promptTokens - hourWrites + (request.tokensPerSearch ?? DEFAULT_TOKENS_PER_SEARCH) * searches.length,
    cached,
    hourCacheWrites: directive.hourCacheWrites + hourWrites,
    reportedBill: directive.reportedBill,
    chunks: splitText({ text, starts }, { visible, end, chunks }),
  };
}

function createStructuredText(format: OutputFormat | undefined, { tokens }: Directive): string | undefined {
  if (!format || tokens !== undefined) return undefined;
  return JSON.stringify(createSample(format.schema, createPicker(format.seed)));
}

function createProviderSearches(count: number, { at, fault }: Directive): readonly ProviderSearch[] {
  const failed = at === 'web_search' && fault !== undefined;
  return Array.from({ length: count }, (_, i) => ({ query: `what was asked, ${i + 1}`, failed }));
}

interface TokenizedText {
  readonly text: string;
  readonly starts: readonly number[];
}

/** Caches by size, because load tests request the same sizes again and again. */
const TEXT_CACHE = new Map<number, TokenizedText>();
const CHUNK_CACHE = new Map<string, readonly TextChunk[]>();
const MAX_CACHE_ENTRIES = 256;
const MAX_CACHED_TOKENS = 4_096;

function generateText(visible: number): TokenizedText {
  return getOrCreate(TEXT_CACHE, visible, visible, () => toTokenizedText(generateProse(visible)));
}

function toTokenizedText(text: string): TokenizedText {
  return { text, starts: findTokenStarts(text) };
}

interface SplitOptions {
  /** Number of visible tokens. */
  readonly visible: number;
  /** Offset at which the visible text ends. */
  readonly end: number;
  readonly chunks: number;
}

function splitText({ text, starts }: TokenizedText, { visible, end, chunks }: SplitOptions): readonly TextChunk[] {
  const createChunks = () => Array.from({ length: chunks }, (_, chunk) => createChunk(chunk));
  const createChunk = (chunk: number): TextChunk => {
    const first = Math.floor((chunk * visible) / chunks);
    const next = Math.floor(((chunk + 1) * visible) / chunks);
    // White space belongs to the token before it; leading white space belongs to the first token.
    const from = chunk === 0 ? 0 : (starts[first] as number);
    const to = chunk === chunks - 1 ? end : (starts[next] as number);
    return { json: JSON.stringify(text.slice(from, to)), tokens: next - first };
  };
  const isGenerated = TEXT_CACHE.get(starts.length)?.text === text;
  return isGenerated
    ? getOrCreate(CHUNK_CACHE, `${starts.length}/${visible}/${chunks}`, visible, createChunks)
    : createChunks();
}

function getOrCreate<K, V>(cache: Map<K, V>, key: K, tokens: number, create: () => V): V {
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const created = create();
  if (tokens > MAX_CACHED_TOKENS) return created;
  if (cache.size >= MAX_CACHE_ENTRIES) cache.clear();
  cache.set(key, created);
  return created;
}
