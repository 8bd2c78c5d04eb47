/** The requests of the proof: what is sent, how it must end, and how many at once. */
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
  /** Whether the client must have the whole answer; undefined where either is right. */
  readonly served: boolean | undefined;
}

const createForProtocols = (
  kinds: (protocol: ProbeProtocol, stream: boolean) => readonly LoadKind[],
): readonly LoadKind[] => PROTOCOLS.flatMap((protocol) => [false, true].flatMap((stream) => kinds(protocol, stream)));
const createName = (protocol: ProbeProtocol, stream: boolean) => `${protocol}, ${stream ? 'streamed' : 'whole'}`;

/** All of these are served. */
export const REGULAR_KINDS: readonly LoadKind[] = createForProtocols((protocol, stream) => [
  { name: createName(protocol, stream), protocol, stream, served: true },
  {
    name: `${createName(protocol, stream)}, slowly`,
    protocol,
    stream,
    served: true,
    options: 'latency=150 chunk_delay=15',
  },
  { name: `${createName(protocol, stream)}, with a tool`, protocol, stream, served: true, withTool: true },
  { name: `${createName(protocol, stream)}, in few pieces`, protocol, stream, served: true, options: 'chunks=1' },
  { name: `${createName(protocol, stream)}, long`, protocol, stream, served: true, length: LONG_BYTES },
]);

/** What is wrong with an answer: no client may take it for whole. */
const INTEGRITY_FAULTS = ['no_done', 'cut', 'cut_frame', 'flipped', 'replayed', 'replayed_nonce', 'malformed', 'error'];
const REJECTION_FAULTS = ['400', '429', '500', 'refuse'];
/** The answer is whole, and what is said of its usage is not so. */
const USAGE_FAULTS = ['no_usage', 'overstated', 'understated'];
/** The enclave itself says in plain text what it was asked. */
const PLAINTEXT_FAULTS = ['plaintext', 'plaintext_error'];

const createFaultKinds = (names: readonly string[], served: boolean): readonly LoadKind[] =>
  createForProtocols((protocol, stream) =>
    names.map((fault) => ({
      ...{ name: `${createName(protocol, stream)}, ${fault}`, protocol, stream, served },
      options: `fault=${fault}`,
    })),
  );

export const FAULTY_KINDS: readonly LoadKind[] = [
  ...createFaultKinds(INTEGRITY_FAULTS, false),
  ...createFaultKinds(REJECTION_FAULTS, false),
  ...createFaultKinds(USAGE_FAULTS, true),
  ...createForProtocols((protocol, stream) => [
    ...[0, 40, 120].map((leavesAfterMs) => ({
      ...{ name: `${createName(protocol, stream)}, left after ${leavesAfterMs} ms`, protocol, stream, leavesAfterMs },
      ...{ served: undefined, options: 'latency=50 chunk_delay=30' },
    })),
    {
      ...{ name: `${createName(protocol, stream)}, no JSON`, protocol, stream, served: false },
      raw: (phrase: string) => `{"model":"private/gpt-oss-120b","messages":[{"role":"user","content":"${phrase}`,
    },
    {
      ...{ name: `${createName(protocol, stream)}, of a wrong shape`, protocol, stream, served: false },
      raw: (phrase: string) =>
        JSON.stringify({ model: 'private/gpt-oss-120b', stream, messages: phrase, [phrase]: phrase }),
    },
  ]),
];

export const LEAKING_KINDS: readonly LoadKind[] = createFaultKinds(PLAINTEXT_FAULTS, false);

/** While processes are killed a request may fail, and none may seem whole that is not. */
export const AMID_KILLS_KINDS: readonly LoadKind[] = REGULAR_KINDS.map((kind) => ({
  ...kind,
  served: undefined,
  options: 'latency=100 chunk_delay=40',
}));

/** On their way for a minute. */
export const SLOW_KINDS: readonly LoadKind[] = createForProtocols((protocol, stream) => [
  {
    ...{ name: `${createName(protocol, stream)}, very slowly`, protocol, stream, served: true },
    options: stream ? 'latency=500 chunk_delay=6000' : 'latency=45000',
  },
]);

export interface LoadOutcome {
  readonly kind: LoadKind;
  readonly results: readonly PrivateProbeResult[];
}

/**
 * Requests of each kind in turn, some at a time.
 * @param shouldContinue whether there is one more than so many
 * @param urls of the proxies as they are then
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

/** Outcomes that are not as they must be, each in a line. */
export function listFailures(outcomes: readonly LoadOutcome[]): readonly string[] {
  return outcomes.flatMap(({ kind, results }) => {
    const last = results.at(-1) as PrivateProbeResult;
    const summary = `${kind.name}: ${last.status} ${last.text.replaceAll(/\s+/g, ' ').slice(0, 160)}`;
    if (results.some(({ complete, hasExpectedText }) => complete && !hasExpectedText))
      return [`${summary} (not what was said)`];
    if (kind.served === undefined) return [];
    // A refusal is an answer too: it has a status, or is an end that can be told from a whole one.
    return kind.served === last.complete && last.status !== 0 ? [] : [summary];
  });
}
