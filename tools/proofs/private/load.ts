/** The requests of the proof: what is sent, how it must end, and with which concurrency. */
import {
  type PrivateProbe,
  type PrivateProbePhrases,
  type PrivateProbeResult,
  type ProbeProtocol,
  runProbe,
} from './probes.ts';

export const AT_ONCE = 16;
const PROTOCOLS: readonly ProbeProtocol[] = ['openai', 'anthropic'];
const LONG_BYTES = 200_000;

export interface LoadKind extends PrivateProbe {
  readonly name: string;
  /** Whether the client must get a complete response; undefined if both outcomes are correct. */
  readonly served: boolean | undefined;
}

const createForProtocols = (
  kinds: (protocol: ProbeProtocol, stream: boolean) => readonly LoadKind[],
): readonly LoadKind[] => PROTOCOLS.flatMap((protocol) => [false, true].flatMap((stream) => kinds(protocol, stream)));
const createName = (protocol: ProbeProtocol, stream: boolean) => `${protocol}, ${stream ? 'streaming' : 'complete'}`;

/** Requests that must all be served. */
export const REGULAR_KINDS: readonly LoadKind[] = createForProtocols((protocol, stream) => [
  { name: createName(protocol, stream), protocol, stream, served: true },
  {
    name: `${createName(protocol, stream)}, slow`,
    protocol,
    stream,
    served: true,
    options: 'latency=150 chunk_delay=15',
  },
  { name: `${createName(protocol, stream)}, with a tool`, protocol, stream, served: true, withTool: true },
  { name: `${createName(protocol, stream)}, in one chunk`, protocol, stream, served: true, options: 'chunks=1' },
  { name: `${createName(protocol, stream)}, long prompt`, protocol, stream, served: true, length: LONG_BYTES },
]);

/** Faults of a response. No client may consider such a response complete. */
const INTEGRITY_FAULTS = ['no_done', 'cut', 'cut_frame', 'flipped', 'replayed', 'replayed_nonce', 'malformed', 'error'];
const REJECTION_FAULTS = ['400', '429', '500', 'refuse'];
/** The response is complete, but its reported usage is missing or incorrect. */
const USAGE_FAULTS = ['no_usage', 'overstated', 'understated'];
/** The enclave itself sends the completion or the prompt unencrypted. */
const PLAINTEXT_FAULTS = ['plaintext', 'plaintext_error'];

const createFaultKinds = (names: readonly string[], served: boolean): readonly LoadKind[] =>
  createForProtocols((protocol, stream) =>
    names.map((fault) => ({
      name: `${createName(protocol, stream)}, ${fault}`,
      protocol,
      stream,
      served,
      options: `fault=${fault}`,
    })),
  );

export const FAULTY_KINDS: readonly LoadKind[] = [
  ...createFaultKinds(INTEGRITY_FAULTS, false),
  ...createFaultKinds(REJECTION_FAULTS, false),
  ...createFaultKinds(USAGE_FAULTS, true),
  ...createForProtocols((protocol, stream) => [
    ...[0, 40, 120].map((leavesAfterMs) => ({
      name: `${createName(protocol, stream)}, closed after ${leavesAfterMs} ms`,
      protocol,
      stream,
      leavesAfterMs,
      served: undefined,
      options: 'latency=50 chunk_delay=30',
    })),
    {
      name: `${createName(protocol, stream)}, malformed JSON`,
      protocol,
      stream,
      served: false,
      raw: (phrase: string) => `{"model":"private/gpt-oss-120b","messages":[{"role":"user","content":"${phrase}`,
    },
    {
      name: `${createName(protocol, stream)}, invalid schema`,
      protocol,
      stream,
      served: false,
      raw: (phrase: string) =>
        JSON.stringify({ model: 'private/gpt-oss-120b', stream, messages: phrase, [phrase]: phrase }),
    },
  ]),
];

export const LEAKING_KINDS: readonly LoadKind[] = createFaultKinds(PLAINTEXT_FAULTS, false);

/** While processes are killed, a request may fail, but an interrupted response must not appear complete. */
export const AMID_KILLS_KINDS: readonly LoadKind[] = REGULAR_KINDS.map((kind) => ({
  ...kind,
  served: undefined,
  options: 'latency=100 chunk_delay=40',
}));

/** Responses that take about a minute. */
export const SLOW_KINDS: readonly LoadKind[] = createForProtocols((protocol, stream) => [
  {
    name: `${createName(protocol, stream)}, very slow`,
    protocol,
    stream,
    served: true,
    options: stream ? 'latency=500 chunk_delay=6000' : 'latency=45000',
  },
]);

export interface LoadOutcome {
  readonly kind: LoadKind;
  readonly results: readonly PrivateProbeResult[];
}

/**
 * Sends concurrent requests, of each kind in turn.
 * @param shouldContinue returns whether to send another request after `sent` requests
 * @param urls returns the current URLs of the proxies
 */
export async function runLoad(
  kinds: readonly LoadKind[],
  shouldContinue: (sent: number) => boolean,
  phrases: PrivateProbePhrases,
  urls: () => readonly string[],
): Promise<readonly LoadOutcome[]> {
  const outcomes: LoadOutcome[] = [];
  let next = 0;
  const worker = async () => {
    for (let i = next++; shouldContinue(i); i = next++) {
      const kind = kinds[i % kinds.length] as LoadKind;
      const to = urls();
      outcomes.push({ kind, results: await runProbe(to[i % to.length] as string, phrases, kind) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return outcomes;
}

/** Returns a line for each unexpected outcome. */
export function listFailures(outcomes: readonly LoadOutcome[]): readonly string[] {
  return outcomes.flatMap(({ kind, results }) => {
    const last = results.at(-1) as PrivateProbeResult;
    const summary = `${kind.name}: ${last.status} ${last.text.replaceAll(/\s+/g, ' ').slice(0, 160)}`;
    if (results.some(({ complete, hasExpectedText }) => complete && !hasExpectedText))
      return [`${summary} (unexpected text)`];
    if (kind.served === undefined) return [];
    // A request that must fail must also get an error: otherwise its status is 0.
    return kind.served === last.complete && last.status !== 0 ? [] : [summary];
  });
}
