/** The answer to a chat request: generated words or a tool call, cut at the limit, and the tokens that belong to them. */
import { randomBytes } from 'node:crypto';
import { countVisibleTokens, type Directive, type Fault } from './directive.ts';
import type { SandboxModel } from './model.ts';
import { createPicker, createSample } from './schemas.ts';
import { findTokenStarts, generateProse } from './tokens.ts';
import { createArguments, selectTool, type Toolbox } from './tools.ts';

/** What a provider understood of a request. */
export interface SandboxModelRequest<M extends SandboxModel = SandboxModel> {
  readonly model: M;
  /** How many answers. */
  readonly n: number;
  /** Most completion tokens of one answer. */
  readonly limit: number;
  readonly promptTokens: number;
  /** Whether the model may reason. */
  readonly reasons: boolean;
  readonly toolbox: Toolbox;
  /** The structure that the answer must have, unless a directive gives its text or length. */
  readonly format: OutputFormat | undefined;
}

export interface OutputFormat {
  readonly schema: unknown;
  /** The same seed has the same answer. */
  readonly seed: string;
}

/** What stands for an object of any kind. */
export const ANY_OBJECT = {
  type: 'object',
  properties: { answer: { type: 'string' }, count: { type: 'integer' }, certain: { type: 'boolean' } },
  required: ['answer'],
};

export interface SandboxModelOutput<M extends SandboxModel = SandboxModel> {
  /** Unique, without the prefix that each provider has. */
  readonly serial: string;
  readonly created: number;
  readonly model: M;
  /** How many choices; each has the same text and the same reasoning. */
  readonly n: number;
  readonly text: string;
  /** The tool that is called: then the text is its arguments. */
  readonly tool: string | undefined;
  /** How many calls of it there are, all with the same arguments; 0 when none is called. */
  readonly calls: number;
  /** Searches that the provider made by itself before it answered. */
  readonly searches: readonly ProviderSearch[];
  /** Visible tokens, of all calls together, and tokens of reasoning, of one choice. */
  readonly visible: number;
  readonly reasoning: number;
  readonly finish: 'end' | 'length' | 'tool';
  readonly input: number;
  readonly cached: number;
  /** Content chunks of a stream; of one call. */
  readonly chunks: readonly TextChunk[];
}

/** A search of the web by the provider itself. One that fails costs nothing. */
export interface ProviderSearch {
  readonly query: string;
  readonly failed: boolean;
}

/** A part of the text, as it stands in a content chunk. */
export interface TextChunk {
  /** A JSON string. */
  readonly json: string;
  readonly tokens: number;
}

const DEFAULT_MAX_CHUNKS = 64;
/** What a search of the provider's own adds to the input. */
const TOKENS_PER_SEARCH = 200;

/** A random part for this run and a counter: unique as OpenAI's ids, and cheaper. */
const RUN = randomBytes(10).toString('hex');
let outputCount = 0;

/** @throws InvalidDirectiveError when it wants a tool that was not offered */
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
  // The text of a directive for a tool is the tool's.
  const directiveText = directive.tool === undefined || chosen ? directive.text : undefined;
  const explicitText =
    directiveText ?? (tool ? createArguments(tool) : createStructuredText(request.format, directive));
  const { text, starts } =
    explicitText === undefined ? generateText(countVisibleTokens(directive)) : toTokenizedText(explicitText);
  const requestedReasoning = request.reasons ? directive.reasoning : 0;
  const reasoning = Math.min(requestedReasoning, request.limit);
  const remainingTokens = request.limit - reasoning;
  const requestedCalls = tool && request.toolbox.allowsParallelCalls ? directive.tools : 1;
  // Calls behind the first one that the limit has no room for are left out.
  const copies = Math.max(1, Math.min(requestedCalls, Math.floor(remainingTokens / Math.max(1, starts.length))));
  const visible = Math.min(starts.length, remainingTokens);
  const complete = visible === starts.length;
  const isWithinLimit = complete && copies === requestedCalls && reasoning === requestedReasoning;
  const end = complete ? text.length : (starts[visible] as number);
  const chunks = Math.min(directive.chunks ?? DEFAULT_MAX_CHUNKS, visible);
  return {
    serial: `${RUN}${(++outputCount).toString(16).padStart(9, '0')}`,
    created: Math.floor(Date.now() / 1000),
    model: request.model,
    n: request.n,
    text: complete ? text : text.slice(0, end),
    tool: tool?.name,
    calls: tool ? copies : 0,
    searches,
    visible: copies * visible,
    reasoning,
    finish: !isWithinLimit ? 'length' : tool ? 'tool' : 'end',
    input: request.promptTokens + TOKENS_PER_SEARCH * searches.length,
    cached: fault === 'cached' ? Math.floor(request.promptTokens / 2) : 0,
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

/** The same numbers come again and again under load: what they lead to is kept. */
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
  /** Tokens that are seen. */
  readonly visible: number;
  /** Where the text ends. */
  readonly end: number;
  readonly chunks: number;
}

function splitText({ text, starts }: TokenizedText, { visible, end, chunks }: SplitOptions): readonly TextChunk[] {
  const createChunks = () => Array.from({ length: chunks }, (_, chunk) => createChunk(chunk));
  const createChunk = (chunk: number): TextChunk => {
    const first = Math.floor((chunk * visible) / chunks);
    const next = Math.floor(((chunk + 1) * visible) / chunks);
    // White space goes with the token before it, at the very start with the first one.
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
