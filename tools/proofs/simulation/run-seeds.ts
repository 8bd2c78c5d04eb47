/** A worker thread of the proof: runs seeds, and reports each to the main thread. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Mutant } from './mutants.ts';
import { plantMutant } from './plant-mutant.ts';

/** Which seeds a worker runs. */
export interface SeedRange {
  readonly first: number;
  readonly last: number;
  /** Difference between two seeds. */
  readonly step: number;
  /** Planted before the product is loaded; the worker ends when it is found. */
  readonly mutant?: Mutant;
}

/** The result of one seed. */
export interface SeedResult {
  readonly seed: number;
  readonly hash: string;
  readonly events: number;
  readonly requests: number;
  readonly kills: number;
  readonly virtualMs: number;
  readonly faults: ReadonlyMap<string, number>;
  /** The first broken rule, if there is one, and what broke it. */
  readonly violation?: { readonly rule: string; readonly detail: string } | undefined;
}

const { first, last, step, mutant } = workerData as SeedRange;
if (mutant) plantMutant(mutant);
// Loaded after the mutant was planted.
const { createPlan, runSimulation } = await import('../../../libs/testing/src/simulation/index.ts');

for (let seed = first; seed <= last; seed += step) {
  const plan = createPlan(String(seed));
  const { world, hash, events, faults, violations } = await runSimulation(plan).catch((error: Error) => ({
    world: undefined,
    hash: '',
    events: [],
    faults: new Map<string, number>(),
    violations: [{ rule: 'the product does not throw', detail: `${error.stack}` }],
  }));
  const result: SeedResult = {
    seed,
    hash,
    events: events.length,
    requests: world?.requests.length ?? 0,
    kills: plan.steps.filter(({ step }) => step === 'kill').length,
    virtualMs: world?.time.nowMs ?? 0,
    faults,
    violation: violations[0],
  };
  parentPort?.postMessage(result);
  if (mutant && result.violation) break;
}
