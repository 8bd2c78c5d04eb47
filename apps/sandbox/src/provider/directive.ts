/**
 * A directive in a request, such as in the last user message of a chat, controls how the sandbox responds:
 * `[[sandbox latency=200 tokens=64 chunks=16 chunk_delay=5 reasoning=10 fault=cut]]`
 */

/** Faults of a generated file. */
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

/** Error statuses that are faults only of data providers. */
export const DATA_ERROR_FAULTS = ['401', '402', '403', '404', '422', '503'] as const;

/** Faults of an encrypted response. */
const ENCLAVE_FAULTS = [
  'no_done',
  'flipped',
  'replayed',
  'replayed_nonce',
  'overstated',
  'understated',
  'plaintext',
  'plaintext_error',
] as const;

/** Faults that break the connection of a stream: after its first half, within an event, or before its usage. */
const STREAM_FAULTS = ['cut', 'cut_frame', 'cut_usage'] as const;

export const FAULTS = [
  '400',
  '429',
  '500',
  ...DATA_ERROR_FAULTS,
  'timeout',
  'refuse',
  'malformed',
  ...STREAM_FAULTS,
  'no_usage',
  'zero',
  'cached',
  'overloaded',
  'error',
  ...FILE_FAULTS,
  'policy',
  'policy_billed',
  'balance',
  'limit',
  'tokens_per_minute',
  'refusal',
  'pause_turn',
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

/** What a provider reports about its bill instead of what is true. */
export interface ReportedBillDirective {
  /** USD, as the provider writes it. */
  readonly cost: string | undefined;
  readonly serviceTier: string | undefined;
  readonly inferenceGeo: string | undefined;
  readonly speed: string | undefined;
}

export interface Directive {
  /** Milliseconds before the first byte, or until a job is complete. */
  readonly latency: number;
  /** Milliseconds between the content chunks of a stream. */
  readonly chunkDelay: number;
  /** Completion tokens, reasoning included; undefined for the default. */
  readonly tokens: number | undefined;
  readonly reasoning: number;
  /** Input tokens that the provider writes to its cache for an hour, in addition to the others. */
  readonly hourCacheWrites: number;
  readonly reportedBill: ReportedBillDirective;
  /** Maximum number of content chunks of a stream. */
  readonly chunks: number | undefined;
  /** The text of a completion or transcript, or the content of a data provider's file. */
  readonly text: string | undefined;
  /** The tool to call, or `any`. A `text` is then its arguments. */
  readonly tool: string | undefined;
  /** Number of calls of the tool in one completion. */
  readonly tools: number;
  /** Number of rounds in which the tool is called, or of uses of a tool that the provider executes. */
  readonly toolTimes: number;
  readonly fault: Fault | undefined;
  /** The fault hits only this many calls with this `id`: the first ones. */
  readonly faultTimes: number | undefined;
  /** The fault hits only this round. The second round is the one after the tool results of the first. */
  readonly faultRound: number | undefined;
  readonly id: string | undefined;
  /** The only provider that the fault hits, or `web_search` for the searches of a provider. */
  readonly at: string | undefined;
  /** Number of results of a data provider, whatever was requested. */
  readonly results: number | undefined;
  /** Minimum size in bytes of the response or file of a data provider, and of a PNG of OpenAI. */
  readonly bytes: number | undefined;
}

/** A mistake in a directive. It is reported with status 400, for chats in the format of the provider. */
export class InvalidDirectiveError extends Error {
  override readonly name = 'InvalidDirectiveError';

  constructor(reason: string) {
    super(`Invalid sandbox directive: ${reason}`);
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
const MAX_TOOL_TIMES = 1_000;
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
  'hour_cache_writes',
  'cost',
  'service_tier',
  'inference_geo',
  'speed',
  'lenient',
]);

const DEFAULT_DIRECTIVE: Directive = {
  latency: 0,
  chunkDelay: 0,
  tokens: undefined,
  reasoning: 0,
  hourCacheWrites: 0,
  reportedBill: { cost: undefined, serviceTier: undefined, inferenceGeo: undefined, speed: undefined },
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
 * Parses the directive in a message. A message without one gets the defaults.
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
    hourCacheWrites: parseInteger(options, 'hour_cache_writes', 0, MAX_TOKENS) ?? 0,
    reportedBill: {
      cost: options.cost,
      serviceTier: options.service_tier,
      inferenceGeo: options.inference_geo,
      speed: options.speed,
    },
    chunks: parseInteger(options, 'chunks', 1, MAX_TOKENS),
    text: options.text,
    // `tools` implies a tool.
    tool: options.tool ?? (options.tools === undefined ? undefined : 'any'),
    tools: parseInteger(options, 'tools', 1, MAX_PARALLEL) ?? 1,
    toolTimes: parseInteger(options, 'tool_times', 1, MAX_TOOL_TIMES) ?? 1,
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
      throw invalidDirectiveError(`unknown option "${name}"; the options are ${[...OPTION_NAMES].join(', ')}`);
    if (name in options) throw invalidDirectiveError(`"${name}" occurs twice`);
    options[name] = value.startsWith('"') ? parseQuoted(value) : value;
    at += fullMatch.length;
  }
  END.lastIndex = at;
  if (!END.test(message))
    throw invalidDirectiveError(`expected name=value pairs and "]]" at "${message.slice(at, at + 20)}"`);
  if (message.includes(MARK, at)) throw invalidDirectiveError('a message can have only one');
  return options;
}

function parseQuoted(value: string): string {
  try {
    return JSON.parse(value);
  } catch {
    throw invalidDirectiveError(`${value} is not a valid JSON string`);
  }
}

function parseInteger(options: Options, name: string, min: number, max: number): number | undefined {
  const text = options[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) {
    throw invalidDirectiveError(`${name} must be an integer from ${min} to ${max}, not "${text}"`);
  }
  return value;
}

function parseFault({ fault }: Options): Fault | undefined {
  const knownFault = FAULTS.find((candidate) => candidate === fault);
  if (fault !== undefined && !knownFault)
    throw invalidDirectiveError(`unknown fault "${fault}"; the faults are ${FAULTS.join(', ')}`);
  return knownFault;
}

function assertConsistent(directive: Directive, options: Options): void {
  const { tokens, chunks, text, tool, fault, faultTimes, faultRound, id } = directive;
  if (text !== undefined && tokens !== undefined) throw invalidDirectiveError('text and tokens cannot be combined');
  const visible = countVisibleTokens(directive);
  if (visible < 0) throw invalidDirectiveError('reasoning cannot exceed tokens, which include it');
  if (tool !== undefined && tokens !== undefined) throw invalidDirectiveError('tool and tokens cannot be combined');
  if (text === undefined && tool === undefined && chunks !== undefined && chunks > visible) {
    throw invalidDirectiveError('chunks cannot exceed the number of visible tokens');
  }
  if (faultTimes !== undefined && (fault === undefined || id === undefined)) {
    throw invalidDirectiveError('fault_times requires fault and id');
  }
  if (faultRound !== undefined && fault === undefined) throw invalidDirectiveError('fault_round requires fault');
  if (options.lenient !== undefined && options.lenient !== 'true') {
    throw invalidDirectiveError('lenient must be true if it is present');
  }
  if (options.tool_times !== undefined && tool === undefined) throw invalidDirectiveError('tool_times requires tool');
}

const DEFAULT_TOKENS = 16;

/** Returns the number of visible tokens of a generated text. */
export function countVisibleTokens({ tokens, reasoning }: Directive): number {
  return tokens === undefined ? DEFAULT_TOKENS : tokens - reasoning;
}

export function invalidDirectiveError(reason: string): InvalidDirectiveError {
  return new InvalidDirectiveError(reason);
}
