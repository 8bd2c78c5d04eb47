/**
 * Streams that break at ten positions. A client's script gets one prompt for each, and streams a chat with it:
 *
 * - `INTERRUPTED_PROMPTS` is a JSON array of prompts. A script that finds it unset skips this part.
 * - Each request has one prompt, goes to one path once, and declares the tool `forecast`. A model whose reasoning is
 *   visible, such as `openai/gpt-oss-120b`, lets the fifth break in its reasoning.
 * - Retries of the client are off where there is such an option. The script reads on past an error if it can.
 * - The script fails with `stream N ended without an error` if the client has raised nothing, whatever it has returned.
 */
import type { RecordedExchange } from './recording-wire.ts';

interface Break {
  readonly position: string;
  /** Options of the sandbox's directive. */
  readonly options: string;
  /** The provider fails before the first byte, so the response has an error status. */
  readonly hasErrorStatus?: true;
  /** The response must have started to call the tool. */
  readonly callsTool?: true;
  /** Whether the provider bills what it has generated. */
  readonly isBilled: boolean;
}

const BREAKS: readonly Break[] = [
  { position: 'before the first byte', options: 'fault=500', hasErrorStatus: true, isBilled: false },
  { position: 'after the role', options: 'tokens=1 fault=cut', isBilled: true },
  { position: 'in the text', options: 'tokens=8 chunks=8 fault=cut', isBilled: true },
  { position: 'in the arguments of a tool call', options: 'tool=forecast fault=cut', callsTool: true, isBilled: true },
  { position: 'in the reasoning', options: 'tokens=41 reasoning=40 chunks=1 fault=cut', isBilled: true },
  { position: 'between the finish reason and the usage', options: 'tokens=8 fault=cut_usage', isBilled: true },
  { position: 'within an event', options: 'tokens=8 fault=cut_frame', isBilled: true },
  { position: 'at an event that is not JSON', options: 'fault=malformed', isBilled: false },
  { position: 'at an error event of the provider', options: 'tokens=8 fault=error', isBilled: true },
  // The delay is longer than BREAK_SETTINGS allow. A provider that does not stop then bills the complete response.
  { position: 'at the time limit', options: 'tokens=8 chunks=2 chunk_delay=8000', isBilled: true },
];

const BILLED_WITHIN_MS = 10_000;
const POLL_INTERVAL_MS = 100;

/** Settings of the gateway under which the last stream breaks. */
export const BREAK_SETTINGS = { UPSTREAM_IDLE_TIMEOUT_MS: '5000' };

const getId = (clientName: string, index: number) => `${clientName}-${index + 1}`;

/** @returns a prompt for each position, by which its calls are found on the bill of the provider */
export function createInterruptedPrompts(clientName: string): readonly string[] {
  return BREAKS.map(({ options }, index) => `Break. [[sandbox id=${getId(clientName, index)} ${options}]]`);
}

/** Whether the request has one of the prompts. */
export function isInterrupted({ sent }: RecordedExchange): boolean {
  return /"Break\. \[\[sandbox id=/.test(JSON.stringify(sent) ?? '');
}

export interface InterruptedStreams {
  readonly clientName: string;
  /** All exchanges with one of the prompts. */
  readonly exchanges: readonly RecordedExchange[];
  /** Number of lines on the bill of the provider by the id of a prompt. */
  readonly billedCalls: ReadonlyMap<string, number>;
  /** Number of requests with an error in the history. */
  readonly failed: number;
}

/**
 * Returns the faults of the interrupted streams of a client: each must have been sent to a path once, must have called
 * the provider once, and must be in the history once.
 * @returns an empty list if the client has sent none of the prompts
 */
export function listInterruptionFaults({
  clientName,
  exchanges,
  billedCalls,
  failed,
}: InterruptedStreams): readonly string[] {
  if (exchanges.length === 0) return [];
  const prompts = createInterruptedPrompts(clientName).map((prompt) => JSON.stringify(prompt).slice(1, -1));
  const faults = BREAKS.flatMap((expected, index) => {
    const ownExchanges = exchanges.filter(({ sent }) => JSON.stringify(sent).includes(prompts[index] as string));
    const started = ownExchanges.filter(({ status }) => status < 300);
    const calls = billedCalls.get(getId(clientName, index)) ?? 0;
    const billed = expected.isBilled ? started.length : 0;
    const withErrorStatus = ownExchanges.filter(({ status }) => status >= 500);
    return [
      ...listPathFaults(expected, ownExchanges),
      // Hidden reasoning fails with an error status, and was generated all the same.
      ...(calls >= billed && calls <= billed + (expected.isBilled ? withErrorStatus.length : 0)
        ? []
        : [`the provider billed ${calls} calls for ${billed} streams`]),
    ].map((fault) => `stream ${index + 1}, interrupted ${expected.position}: ${fault}`);
  });
  const failedCount = countCalls(exchanges);
  const inHistory = failed === failedCount ? [] : [`${failedCount} streams broke, the history has ${failed} errors`];
  return [...faults, ...inHistory];
}

function listPathFaults(
  { hasErrorStatus, callsTool }: Break,
  exchanges: readonly RecordedExchange[],
): readonly string[] {
  if (exchanges.length === 0) return ['it was not sent'];
  return [...Map.groupBy(exchanges, ({ path }) => path)].flatMap(([path, ownExchanges]) => {
    const started = ownExchanges.filter(({ status }) => status < 300);
    const rejected = ownExchanges.filter(
      ({ status, headers }) => status >= 400 && status < 500 && !('last-event-id' in headers),
    );
    const [first] = started;
    return [
      ...rejected.map(({ status, response }) => `${path} was rejected: ${status} ${response}`),
      ...(hasErrorStatus && first ? [`${path} did not fail before its first byte`] : []),
      ...(started.length > 1 ? [`${path} was called ${started.length} times`] : []),
      ...(callsTool && first && !first.response.includes('forecast')
        ? [`${path} has no call of the tool forecast`]
        : []),
    ];
  });
}

/** Counts the requests that a provider was called for. The others were rejected as repetitions. */
export function countCalls(exchanges: readonly RecordedExchange[]): number {
  return exchanges.filter(({ status }) => status < 300 || status >= 500).length;
}

/**
 * Returns how many calls with each prompt the simulated providers have billed, by the id of the prompt. A provider that
 * does not stop at a disconnect bills later, so this waits up to 10 s for calls that are missing.
 */
export async function fetchBilledCalls(
  sandbox: string,
  isComplete: (billedCalls: ReadonlyMap<string, number>) => boolean,
): Promise<ReadonlyMap<string, number>> {
  const deadline = performance.now() + BILLED_WITHIN_MS;
  for (;;) {
    const lines = (await (await fetch(`${sandbox}/bill/lines`)).json()) as readonly { readonly directive?: string }[];
    const byId = Map.groupBy(lines, ({ directive = '' }) => directive);
    const counts = new Map([...byId].map(([id, { length }]) => [id, length]));
    if (isComplete(counts) || performance.now() > deadline) return counts;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
