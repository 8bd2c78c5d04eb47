/**
 * What the last user message may ask of the sandbox, in words it carries:
 * `[[sandbox latency=200 tokens=64 chunks=16 chunk_delay=5 reasoning=10 fault=cut]]`
 */

/** What may be wrong with a file that was made. */
const FILE_FAULTS = [
  'html',
  'svg',
  'exe',
  'disguised_html',
  'disguised_svg',
  'disguised_exe',
  'expired',
  'too_large',
  'truncated',
  'broken',
  'stalled',
  'astray',
] as const;

/** How vendors of data refuse, beside what all do. */
export const DATA_ERROR_FAULTS = ['401', '402', '403', '404', '422', '503'] as const;

/** What may be wrong with an encrypted answer. */
const ENCLAVE_FAULTS = [
  'cut_frame',
  'no_done',
  'flipped',
  'replayed',
  'replayed_nonce',
  'overstated',
  'understated',
  'plaintext',
  'plaintext_error',
] as const;

export const FAULTS = [
  '400',
  '429',
  '500',
  ...DATA_ERROR_FAULTS,
  'timeout',
  'refuse',
  'malformed',
  'cut',
  'no_usage',
  'zero',
  'cached',
  'overloaded',
  'error',
  ...FILE_FAULTS,
  'policy',
  'policy_billed',
  'lost',
  'fewer',
  'duplicate',
  'empty',
  'echo',
  'tells_key',
  'pending',
  ...ENCLAVE_FAULTS,
] as const;

export type Fault = (typeof FAULTS)[number];

export interface Directive {
  /** Milliseconds before the first byte. */
  readonly latency: number;
  /** Milliseconds between the content chunks of a stream. */
  readonly chunkDelay: number;
  /** Completion tokens, reasoning included; undefined for as many as there are by default. */
  readonly tokens: number | undefined;
  readonly reasoning: number;
  /** Into how many content chunks a stream is split. */
  readonly chunks: number | undefined;
  /** The answer, word for word. */
  readonly text: string | undefined;
  /** The tool to call, or `any`; a `text` is then its arguments. */
  readonly tool: string | undefined;
  /** How many calls of it stand in one answer. */
  readonly tools: number;
  /** In how many rounds it is called. */
  readonly toolTimes: number;
  readonly fault: Fault | undefined;
  /** The fault hits only so many calls that carry this `id`. */
  readonly faultTimes: number | undefined;
  /** The fault hits only this round: the second is the one that has the results of the first one's tools. */
  readonly faultRound: number | undefined;
  readonly id: string | undefined;
  /** The only provider that the fault hits. */
  readonly at: string | undefined;
  /** How much a vendor of data finds, whatever it was asked for. */
  readonly results: number | undefined;
  /** How large the file is that a vendor of data sends. */
  readonly bytes: number | undefined;
}

/** Each provider reports it in its own shape, with status 400. */
export class InvalidDirectiveError extends Error {
  override readonly name = 'InvalidDirectiveError';

  constructor(reason: string) {
    super(`The sandbox directive is not understood: ${reason}.`);
  }
}

const MARK = '[[sandbox';
const OPTION = /\s+([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"\]]+)/y;
const END = /\s*\]\]/y;

const MAX_LATENCY_MS = 600_000;
const MAX_CHUNK_DELAY_MS = 60_000;
const MAX_TOKENS = 200_000;
const MAX_FAULT_TIMES = 1_000;
const MAX_ROUNDS = 100;
const MAX_PARALLEL = 100;
const MAX_RESULTS = 100_000;
const MAX_BYTES = 2 ** 31;

type Options = Readonly<Partial<Record<string, string>>>;

const OPTION_NAMES: ReadonlySet<string> = new Set([
  'latency',
  'tokens',
  'chunk_delay',
  'chunks',
  'reasoning',
  'text',
  'tool',
  'tools',
  'fault',
  'tool_times',
  'fault_times',
  'fault_round',
  'id',
  'at',
  'results',
  'bytes',
]);

const DEFAULT_DIRECTIVE: Directive = {
  latency: 0,
  chunkDelay: 0,
  tokens: undefined,
  reasoning: 0,
  chunks: undefined,
  text: undefined,
  tool: undefined,
  tools: 1,
  toolTimes: 1,
  fault: undefined,
  faultTimes: undefined,
  faultRound: undefined,
  id: undefined,
  at: undefined,
  results: undefined,
  bytes: undefined,
};

/**
 * Reads the directive in a message; without one everything is at its default.
 * @throws InvalidDirectiveError
 */
export function parseDirective(message: string): Directive {
  const start = message.indexOf(MARK);
  if (start < 0) return DEFAULT_DIRECTIVE;
  const options = parseOptions(message, start + MARK.length);
  const reasoning = parseInteger(options, 'reasoning', 0, MAX_TOKENS) ?? 0;
  const directive: Directive = {
    latency: parseInteger(options, 'latency', 0, MAX_LATENCY_MS) ?? 0,
    chunkDelay: parseInteger(options, 'chunk_delay', 0, MAX_CHUNK_DELAY_MS) ?? 0,
    tokens: parseInteger(options, 'tokens', 0, MAX_TOKENS),
    reasoning,
    chunks: parseInteger(options, 'chunks', 1, MAX_TOKENS),
    text: options.text,
    // Whoever wants several calls wants one.
    tool: options.tool ?? (options.tools === undefined ? undefined : 'any'),
    tools: parseInteger(options, 'tools', 1, MAX_PARALLEL) ?? 1,
    toolTimes: parseInteger(options, 'tool_times', 1, MAX_ROUNDS) ?? 1,
    fault: parseFault(options),
    faultTimes: parseInteger(options, 'fault_times', 1, MAX_FAULT_TIMES),
    faultRound: parseInteger(options, 'fault_round', 1, MAX_ROUNDS),
    id: options.id,
    at: options.at,
    results: parseInteger(options, 'results', 0, MAX_RESULTS),
    bytes: parseInteger(options, 'bytes', 0, MAX_BYTES),
  };
  assertConsistent(directive, options);
  return directive;
}

function parseOptions(message: string, start: number): Options {
  const options: Partial<Record<string, string>> = {};
  let at = start;
  for (;;) {
    OPTION.lastIndex = at;
    const match = OPTION.exec(message);
    if (!match) break;
    const [fullMatch, name = '', value = ''] = match;
    if (!OPTION_NAMES.has(name))
      throw invalidDirectiveError(`there is no option "${name}"; there are ${[...OPTION_NAMES].join(', ')}`);
    if (name in options) throw invalidDirectiveError(`"${name}" stands there twice`);
    options[name] = value.startsWith('"') ? parseQuoted(value) : value;
    at += fullMatch.length;
  }
  END.lastIndex = at;
  if (!END.test(message))
    throw invalidDirectiveError(`it must be name=value pairs and end with "]]", see "${message.slice(at, at + 20)}"`);
  if (message.includes(MARK, at)) throw invalidDirectiveError('there is more than one');
  return options;
}

function parseQuoted(value: string): string {
  try {
    return JSON.parse(value);
  } catch {
    throw invalidDirectiveError(`${value} is not a string as in JSON`);
  }
}

function parseInteger(options: Options, name: string, min: number, max: number): number | undefined {
  const text = options[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw invalidDirectiveError(`${name} must be a whole number from ${min} to ${max}, not "${text}"`);
  }
  return value;
}

function parseFault({ fault }: Options): Fault | undefined {
  const knownFault = FAULTS.find((candidate) => candidate === fault);
  if (fault !== undefined && !knownFault)
    throw invalidDirectiveError(`there is no fault "${fault}"; there are ${FAULTS.join(', ')}`);
  return knownFault;
}

function assertConsistent(directive: Directive, options: Options): void {
  const { tokens, chunks, text, tool, fault, faultTimes, faultRound, id } = directive;
  if (text !== undefined && tokens !== undefined) throw invalidDirectiveError('a text has its own number of tokens');
  const visible = countVisibleTokens(directive);
  if (visible < 0) throw invalidDirectiveError('reasoning tokens are part of tokens and cannot be more');
  if (tool !== undefined && tokens !== undefined)
    throw invalidDirectiveError('a tool call has its own number of tokens');
  if (text === undefined && tool === undefined && chunks !== undefined && chunks > visible) {
    throw invalidDirectiveError('there cannot be more chunks than visible tokens');
  }
  if (faultTimes !== undefined && (fault === undefined || id === undefined)) {
    throw invalidDirectiveError('fault_times needs a fault and an id');
  }
  if (faultRound !== undefined && fault === undefined) throw invalidDirectiveError('fault_round needs a fault');
  if (options.tool_times !== undefined && tool === undefined) throw invalidDirectiveError('tool_times needs a tool');
}

const DEFAULT_TOKENS = 16;

/** Of generated words. */
export function countVisibleTokens({ tokens, reasoning }: Directive): number {
  return tokens === undefined ? DEFAULT_TOKENS : tokens - reasoning;
}

export function invalidDirectiveError(reason: string): InvalidDirectiveError {
  return new InvalidDirectiveError(reason);
}
