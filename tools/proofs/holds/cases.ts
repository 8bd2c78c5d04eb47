/** The waves of each part of the proof, and what must hold for them. */
import {
  evaluateBill,
  evaluateComplete,
  evaluateConsistency,
  evaluateLedger,
  evaluateMeanComplete,
  type HoldFinding,
} from './evaluate.ts';
import { createEqualLengths, sampleLogNormal } from './random.ts';
import type { WaveOutcome } from './run-waves.ts';
import type { Delivery, Wave } from './wave.ts';

/** One of the most expensive models, and one whose provider has every protocol and several choices in one call. */
const EXPENSIVE = 'anthropic/claude-opus-4.7';
const VERSATILE = 'openai/gpt-4.1';
/** Each is used by one seed, because an enclave has only one model. The money for others is less than one can pay in. */
const PRIVATE = ['private/kimi-k3', 'private/llama3-3-70b'] as const;

const CALLERS = [64, 200] as const;
const DELIVERIES: readonly Delivery[] = ['streamed', 'delayed', 'immediate'];
const TOKENS = 1_600;
const AFFORDABLE = 40;
const MIN_COMPLETE = 36;
/** Enough for the statistics of a model. */
const MEASURED_RESPONSES = 24;
const MEASURED_SEED = 7_007;
export const MAX_TRUNCATED_SHARE = 0.12;
const MIN_COMPLETE_SHARE = 0.9;
/** The seeds of every kind of request. */
const SEEDS_OF_KIND = 3;
/** One wave at a time takes a minute. */
const SEEDS_OF_KILLS = 2;

/** Waves that differ in their seed only, and the rules for their outcomes. */
export interface WaveCase {
  readonly name: string;
  readonly waves: readonly Wave[];
  evaluate(outcomes: readonly WaveOutcome[]): readonly HoldFinding[];
  /** Whether no other wave may run at the same time. */
  readonly isAlone?: boolean;
}

const listSeeds = (seeds: number) => Array.from({ length: seeds }, (_, i) => i + 1);

/** Nothing is measured of the models of odd seeds. */
const isMeasured = (seed: number) => seed % 2 === 0;

/** 1,600 tokens each, with money for 40 responses. */
export function listEqualCases(seeds: number): readonly WaveCase[] {
  return DELIVERIES.flatMap((delivery) =>
    CALLERS.map((callers) => ({
      name: `equal: ${callers} callers, ${TOKENS} tokens ${delivery}, money for ${AFFORDABLE}`,
      waves: listSeeds(seeds).map(
        (seed): Wave => ({
          name: `equal-${callers}-${delivery}-${seed}`,
          seed,
          base: EXPENSIVE,
          delivery,
          measured: isMeasured(seed) ? createEqualLengths(MEASURED_RESPONSES, TOKENS) : 'unmeasured',
          lengths: createEqualLengths(callers, TOKENS),
          affordableCount: AFFORDABLE,
        }),
      ),
      evaluate: (outcomes) => evaluateEqual(outcomes, MIN_COMPLETE),
    })),
  );
}

function evaluateEqual(outcomes: readonly WaveOutcome[], minComplete: number): readonly HoldFinding[] {
  return [
    evaluateBill(outcomes),
    evaluateComplete(outcomes, minComplete),
    evaluateLedger(outcomes),
    evaluateConsistency(outcomes),
  ];
}

/** 64 streams of 500 tokens, with money for 70. */
export function listAmpleCases(seeds: number): readonly WaveCase[] {
  return (['unmeasured', createEqualLengths(MEASURED_RESPONSES, 500)] as const).map((measured) => ({
    name: `ample: 64 streams of 500 tokens, money for 70, ${measured === 'unmeasured' ? 'nothing measured' : 'measured'}`,
    waves: listSeeds(Math.ceil(seeds / 2)).map(
      (seed): Wave => ({
        name: `ample-${measured === 'unmeasured' ? 'new' : 'measured'}-${seed}`,
        seed,
        base: EXPENSIVE,
        measured,
        lengths: createEqualLengths(64, 500),
        affordableCount: 70,
        delivery: 'streamed',
      }),
    ),
    evaluate: (outcomes) => evaluateEqual(outcomes, 64),
  }));
}

/** 50 to 8,000 tokens, log-normal, at 100 tokens per second. Each cluster runs a half of the seeds. */
export function listVariedCases(seeds: number, gateways: number): readonly WaveCase[] {
  const measured = sampleLogNormal(MEASURED_RESPONSES, MEASURED_SEED);
  const isOwn = (seed: number) => seeds === 1 || isMeasured(seed) === gateways > 1;
  return [AFFORDABLE, 70].flatMap((affordableCount) =>
    CALLERS.map((callers) => ({
      name: `varied: ${callers} callers, 50 to 8,000 tokens, money for ${affordableCount}`,
      waves: listSeeds(seeds)
        .filter(isOwn)
        .map(
          (seed): Wave => ({
            name: `varied-${callers}-${affordableCount}-${seed}`,
            seed,
            base: EXPENSIVE,
            measured,
            lengths: sampleLogNormal(callers, seed),
            affordableCount,
            delivery: 'streamed',
          }),
        ),
      evaluate: (outcomes) => [
        evaluateMeanComplete(outcomes, MIN_COMPLETE_SHARE * Math.min(affordableCount, callers)),
        evaluateBill(outcomes),
        evaluateLedger(outcomes),
        evaluateConsistency(outcomes),
      ],
    })),
  );
}

interface Kind extends Pick<Wave, 'base' | 'delivery'>, Partial<Omit<Wave, 'base' | 'delivery'>> {
  readonly kind: string;
  readonly isAlone?: boolean;
  readonly minComplete?: number;
}

const QUERY = JSON.stringify(JSON.stringify({ query: 'coins' }));
const SEARCH_TOKENS = 800;
/** A request that may search has one hold, which is larger than what it will probably need. So fewer run. */
const MIN_SEARCHES_COMPLETE = 4;
const KINDS: readonly Kind[] = [
  { kind: 'within the limit of a key', base: EXPENSIVE, delivery: 'streamed', isCapped: true },
  { kind: 'within the limit of a key, delayed', base: EXPENSIVE, delivery: 'delayed', isCapped: true },
  { kind: 'two choices', base: VERSATILE, delivery: 'streamed', fields: { n: 2 } },
  { kind: 'Responses', base: VERSATILE, delivery: 'streamed', protocol: 'responses' },
  { kind: 'Responses of another protocol', base: EXPENSIVE, delivery: 'streamed', protocol: 'responses' },
  { kind: 'Messages', base: EXPENSIVE, delivery: 'streamed', protocol: 'messages' },
  { kind: 'private models', base: PRIVATE[0], delivery: 'streamed', isPrivate: true, isAlone: true },
  {
    kind: 'searches by the provider',
    base: EXPENSIVE,
    delivery: 'streamed',
    minComplete: MIN_SEARCHES_COMPLETE,
    fields: { tools: [{ type: 'web_search' }] },
    affordableCount: 200,
    directive: `tool=web_search tool_times=2 text="${'coin '.repeat(SEARCH_TOKENS).trim()}"`,
    lengths: createEqualLengths(64, SEARCH_TOKENS),
  },
  {
    kind: 'search rounds',
    base: VERSATILE,
    delivery: 'immediate',
    isAlone: true,
    minComplete: MIN_SEARCHES_COMPLETE,
    fields: { tools: [{ type: 'web_search', engine: 'exa' }] },
    directive: `tool=web_search tool_times=3 text=${QUERY}`,
    lengths: createEqualLengths(64, 16),
  },
];

/** The same with every kind of request, within the limit of a key, and with private models. */
export function listKindCases(seeds: number): readonly WaveCase[] {
  return KINDS.map(({ kind, isAlone = false, minComplete = MIN_COMPLETE, ...rest }) => ({
    name: `kinds: ${kind}, 64 callers, money for ${rest.affordableCount ?? AFFORDABLE}`,
    isAlone,
    waves: listSeeds(Math.min(seeds, rest.isPrivate ? PRIVATE.length : SEEDS_OF_KIND)).map(
      (seed): Wave => ({
        name: `${kind.replaceAll(/[ ,]+/g, '-')}-${seed}`,
        seed,
        measured: 'unmeasured',
        affordableCount: AFFORDABLE,
        lengths: createEqualLengths(64, TOKENS),
        ...rest,
        ...(rest.isPrivate ? { base: PRIVATE[seed - 1] as string } : {}),
      }),
    ),
    evaluate: (outcomes) => evaluateEqual(outcomes, minComplete),
  }));
}

/** Waves during which a gateway is killed. Their providers may bill more: what a killed gateway held is released. */
export function listKillCases(seeds: number): readonly WaveCase[] {
  return CALLERS.map((callers) => ({
    name: `kills: ${callers} callers, ${TOKENS} tokens streamed, money for ${AFFORDABLE}, a gateway is killed`,
    isAlone: true,
    waves: listSeeds(Math.min(seeds, SEEDS_OF_KILLS)).map(
      (seed): Wave => ({
        name: `kills-${callers}-${seed}`,
        seed,
        base: EXPENSIVE,
        measured: 'unmeasured',
        delivery: 'streamed',
        lengths: createEqualLengths(callers, TOKENS),
        affordableCount: AFFORDABLE,
      }),
    ),
    evaluate: (outcomes) => [evaluateConsistency(outcomes, ['lost', 'broken', '503'])],
  }));
}
