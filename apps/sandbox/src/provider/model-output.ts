/** The answer to a chat request: generated words or a tool call, cut at the limit, and the tokens that belong to them. */
import { randomBytes } from 'node:crypto';
import { type Directive, type Fault, visibleTokens } from './directive.ts';
import type { SandboxModel } from './model.ts';
import { chanceOf, sampleOf } from './schemas.ts';
import { tokenStarts, wordsOf } from './tokens.ts';
import { argumentsFor, chosenTool, type Toolbox } from './tools.ts';

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
  readonly format: Format | undefined;
}

export interface Format {
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
  readonly searches: readonly OwnSearch[];
  /** Visible tokens, of all calls together, and tokens of reasoning, of one choice. */
  readonly visible: number;
  readonly reasoning: number;
  readonly finish: 'end' | 'length' | 'tool';
  readonly input: number;
  readonly cached: number;
  /** Content chunks of a stream; of one call. */
  readonly pieces: readonly Piece[];
}

/** A search of the web by the provider itself. One that fails costs nothing. */
export interface OwnSearch {
  readonly query: string;
  readonly failed: boolean;
}

/** A part of the text, as it stands in a content chunk. */
export interface Piece {
  /** A JSON string. */
  readonly json: string;
  readonly tokens: number;
}

const DEFAULT_MOST_CHUNKS = 64;
/** What a search of the provider's own adds to the input. */
const TOKENS_PER_SEARCH = 200;

/** A random part for this run and a counter: unique as OpenAI's ids, and cheaper. */
const RUN = randomBytes(10).toString('hex');
let answers = 0;

/** @throws MisunderstoodDirective when it wants a tool that was not offered */
export function compose<M extends SandboxModel>(
  request: SandboxModelRequest<M>,
  directive: Directive,
  fault: Fault | undefined,
): SandboxModelOutput<M> {
  const chosen = chosenTool(request.toolbox, directive.tool, directive.toolTimes);
  const tool = chosen?.ownUses === undefined ? chosen : undefined;
  const searches =
    chosen?.ownUses === undefined ? [] : ownSearches(Math.min(directive.toolTimes, chosen.ownUses), directive);
  // The text of a directive for a tool is the tool's.
  const words = directive.tool === undefined || chosen ? directive.text : undefined;
  const given = words ?? (tool ? argumentsFor(tool) : structured(request.format, directive));
  const { text, starts } = given === undefined ? generated(visibleTokens(directive)) : literal(given);
  const thought = request.reasons ? directive.reasoning : 0;
  const reasoning = Math.min(thought, request.limit);
  const room = request.limit - reasoning;
  const wanted = tool && request.toolbox.parallel ? directive.tools : 1;
  // Calls behind the first one that the limit has no room for are left out.
  const copies = Math.max(1, Math.min(wanted, Math.floor(room / Math.max(1, starts.length))));
  const visible = Math.min(starts.length, room);
  const complete = visible === starts.length;
  const whole = complete && copies === wanted && reasoning === thought;
  const end = complete ? text.length : (starts[visible] as number);
  const chunks = Math.min(directive.chunks ?? DEFAULT_MOST_CHUNKS, visible);
  return {
    serial: `${RUN}${(++answers).toString(16).padStart(9, '0')}`,
    created: Math.floor(Date.now() / 1000),
    model: request.model,
    n: request.n,
    text: complete ? text : text.slice(0, end),
    tool: tool?.name,
    calls: tool ? copies : 0,
    searches,
    visible: copies * visible,
    reasoning,
    finish: !whole ? 'length' : tool ? 'tool' : 'end',
    input: request.promptTokens + TOKENS_PER_SEARCH * searches.length,
    cached: fault === 'cached' ? Math.floor(request.promptTokens / 2) : 0,
    pieces: piecesOf({ text, starts }, { visible, end, chunks }),
  };
}

function structured(format: Format | undefined, { tokens }: Directive): string | undefined {
  if (!format || tokens !== undefined) return undefined;
  return JSON.stringify(sampleOf(format.schema, chanceOf(format.seed)));
}

function ownSearches(count: number, { at, fault }: Directive): readonly OwnSearch[] {
  const failed = at === 'web_search' && fault !== undefined;
  return Array.from({ length: count }, (_, i) => ({ query: `what was asked, ${i + 1}`, failed }));
}

interface Text {
  readonly text: string;
  readonly starts: readonly number[];
}

/** The same numbers come again and again under load: what they lead to is kept. */
const TEXTS = new Map<number, Text>();
const PIECES = new Map<string, readonly Piece[]>();
const MOST_KEPT = 256;
const MOST_KEPT_TOKENS = 4_096;

function generated(visible: number): Text {
  return kept(TEXTS, visible, visible, () => literal(wordsOf(visible)));
}

function literal(text: string): Text {
  return { text, starts: tokenStarts(text) };
}

interface Cut {
  /** Tokens that are seen. */
  readonly visible: number;
  /** Where the text ends. */
  readonly end: number;
  readonly chunks: number;
}

function piecesOf({ text, starts }: Text, { visible, end, chunks }: Cut): readonly Piece[] {
  const split = () => Array.from({ length: chunks }, (_, chunk) => pieceAt(chunk));
  const pieceAt = (chunk: number): Piece => {
    const first = Math.floor((chunk * visible) / chunks);
    const next = Math.floor(((chunk + 1) * visible) / chunks);
    // White space goes with the token before it, at the very start with the first one.
    const from = chunk === 0 ? 0 : (starts[first] as number);
    const to = chunk === chunks - 1 ? end : (starts[next] as number);
    return { json: JSON.stringify(text.slice(from, to)), tokens: next - first };
  };
  const isGenerated = TEXTS.get(starts.length)?.text === text;
  return isGenerated ? kept(PIECES, `${starts.length}/${visible}/${chunks}`, visible, split) : split();
}

function kept<K, V>(cache: Map<K, V>, key: K, tokens: number, make: () => V): V {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = make();
  if (tokens > MOST_KEPT_TOKENS) return made;
  if (cache.size >= MOST_KEPT) cache.clear();
  cache.set(key, made);
  return made;
}
