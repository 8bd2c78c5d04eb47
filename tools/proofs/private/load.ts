/** The requests of the proof: what is sent, how it must end, and how many at once. */
import {
  ask,
  type PrivateProbe,
  type PrivateProbePhrases,
  type PrivateProbeResult,
  type ProbeProtocol,
} from './probes.ts';

export const AT_ONCE = 16;
const FACES: readonly ProbeProtocol[] = ['openai', 'anthropic'];
const LONG_BYTES = 200_000;

export interface LoadKind extends PrivateProbe {
  readonly name: string;
  /** Whether the client must have the whole answer; undefined where either is right. */
  readonly served: boolean | undefined;
}

const both = (kinds: (face: ProbeProtocol, stream: boolean) => readonly LoadKind[]): readonly LoadKind[] =>
  FACES.flatMap((face) => [false, true].flatMap((stream) => kinds(face, stream)));
const nameOf = (face: ProbeProtocol, stream: boolean) => `${face}, ${stream ? 'streamed' : 'whole'}`;

/** All of these are served. */
export const PLAIN: readonly LoadKind[] = both((face, stream) => [
  { name: nameOf(face, stream), face, stream, served: true },
  { name: `${nameOf(face, stream)}, slowly`, face, stream, served: true, options: 'latency=150 chunk_delay=15' },
  { name: `${nameOf(face, stream)}, with a tool`, face, stream, served: true, withTool: true },
  { name: `${nameOf(face, stream)}, in few pieces`, face, stream, served: true, options: 'chunks=1' },
  { name: `${nameOf(face, stream)}, long`, face, stream, served: true, length: LONG_BYTES },
]);

/** What is wrong with an answer: no client may take it for whole. */
const BROKEN = ['no_done', 'cut', 'cut_frame', 'flipped', 'replayed', 'replayed_nonce', 'malformed', 'error'];
const REFUSED = ['400', '429', '500', 'refuse'];
/** The answer is whole, and what is said of its usage is not so. */
const USAGE = ['no_usage', 'overstated', 'understated'];
/** The enclave itself says in plain text what it was asked. */
const BETRAYED = ['plaintext', 'plaintext_error'];

const faults = (names: readonly string[], served: boolean): readonly LoadKind[] =>
  both((face, stream) =>
    names.map((fault) => ({
      ...{ name: `${nameOf(face, stream)}, ${fault}`, face, stream, served },
      options: `fault=${fault}`,
    })),
  );

export const FAULTY: readonly LoadKind[] = [
  ...faults(BROKEN, false),
  ...faults(REFUSED, false),
  ...faults(USAGE, true),
  ...both((face, stream) => [
    ...[0, 40, 120].map((leavesAfterMs) => ({
      ...{ name: `${nameOf(face, stream)}, left after ${leavesAfterMs} ms`, face, stream, leavesAfterMs },
      ...{ served: undefined, options: 'latency=50 chunk_delay=30' },
    })),
    {
      ...{ name: `${nameOf(face, stream)}, no JSON`, face, stream, served: false },
      raw: (word: string) => `{"model":"private/gpt-oss-120b","messages":[{"role":"user","content":"${word}`,
    },
    {
      ...{ name: `${nameOf(face, stream)}, of a wrong shape`, face, stream, served: false },
      raw: (word: string) => JSON.stringify({ model: 'private/gpt-oss-120b', stream, messages: word, [word]: word }),
    },
  ]),
];

export const BETRAYING: readonly LoadKind[] = faults(BETRAYED, false);

/** While processes are killed a request may fail, and none may seem whole that is not. */
export const HARD: readonly LoadKind[] = PLAIN.map((kind) => ({
  ...kind,
  served: undefined,
  options: 'latency=100 chunk_delay=40',
}));

/** On their way for a minute. */
export const SLOW: readonly LoadKind[] = both((face, stream) => [
  {
    ...{ name: `${nameOf(face, stream)}, very slowly`, face, stream, served: true },
    options: stream ? 'latency=500 chunk_delay=6000' : 'latency=45000',
  },
]);

export interface LoadOutcome {
  readonly kind: LoadKind;
  readonly answers: readonly PrivateProbeResult[];
}

/**
 * Requests of each kind in turn, some at a time.
 * @param isMore whether there is one more than so many
 * @param urls of the proxies as they are then
 */
export async function load(
  kinds: readonly LoadKind[],
  isMore: (sent: number) => boolean,
  words: PrivateProbePhrases,
  urls: () => readonly string[],
): Promise<readonly LoadOutcome[]> {
  const outcomes: LoadOutcome[] = [];
  let next = 0;
  const worker = async () => {
    for (let i = next++; isMore(i); i = next++) {
      const kind = kinds[i % kinds.length] as LoadKind;
      const to = urls();
      outcomes.push({ kind, answers: await ask(to[i % to.length] as string, words, kind) });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return outcomes;
}

/** Outcomes that are not as they must be, each in a line. */
export function wrongIn(outcomes: readonly LoadOutcome[]): readonly string[] {
  return outcomes.flatMap(({ kind, answers }) => {
    const last = answers.at(-1) as PrivateProbeResult;
    const said = `${kind.name}: ${last.status} ${last.text.replaceAll(/\s+/g, ' ').slice(0, 160)}`;
    if (answers.some(({ complete, understood }) => complete && !understood)) return [`${said} (not what was said)`];
    if (kind.served === undefined) return [];
    // A refusal is an answer too: it has a status, or is an end that can be told from a whole one.
    return kind.served === last.complete && last.status !== 0 ? [] : [said];
  });
}
