import { NO_STORE_FAULTS, type StoreFaults } from './faulty-event-store.ts';
import type { Plan, Step } from './plan.ts';

/** Whether a plan still fails in the same way. */
export type StillFails = (plan: Plan) => Promise<boolean>;

/**
 * Reduces a failing plan to the steps and faults that matter: what can be left out so that it still fails is left out.
 * @param maxRuns maximum number of calls of `stillFails`
 */
export async function shrinkPlan(plan: Plan, stillFails: StillFails, maxRuns = 400): Promise<Plan> {
  let runs = 0;
  let smallest = plan;
  const tryPlan = async (candidate: Plan): Promise<boolean> => {
    if (runs >= maxRuns) return false;
    runs++;
    if (!(await stillFails(candidate))) return false;
    smallest = candidate;
    return true;
  };
  const removeParts = async <T>(get: (from: Plan) => readonly T[], set: (from: Plan, parts: readonly T[]) => Plan) => {
    for (let size = Math.ceil(get(smallest).length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let start = 0; start < get(smallest).length; ) {
        const parts = get(smallest);
        const isRemoved = await tryPlan(set(smallest, [...parts.slice(0, start), ...parts.slice(start + size)]));
        if (!isRemoved) start += size;
      }
    }
  };
  await removeParts(
    ({ outages }) => outages,
    (from, outages) => ({ ...from, outages }),
  );
  await removeParts(
    ({ databaseOutages }) => databaseOutages,
    (from, databaseOutages) => ({ ...from, databaseOutages }),
  );
  await removeParts(
    ({ steps }) => steps,
    (from, steps) => ({ ...from, steps: selectPossible(steps) }),
  );
  for (const fault of Object.keys(NO_STORE_FAULTS) as (keyof StoreFaults)[])
    if (smallest.storeFaults[fault] > 0)
      await tryPlan({ ...smallest, storeFaults: { ...smallest.storeFaults, [fault]: 0 } });
  await tryPlan({ ...smallest, skewsMs: smallest.skewsMs.map(() => 0) });
  await tryPlan({ ...smallest, eventsPerSnapshot: 1_000 });
  await tryPlan({ ...smallest, cacheBytes: 100_000_000 });
  await removeParts(
    ({ steps }) => steps,
    (from, steps) => ({ ...from, steps: selectPossible(steps) }),
  );
  return smallest;
}

/** Leaves out the steps of accounts that are not opened. */
function selectPossible(steps: readonly Step[]): readonly Step[] {
  const accounts = new Set(steps.flatMap((step) => (step.step === 'open' ? [step.account] : [])));
  return steps.filter((step) => !('account' in step) || accounts.has(step.account));
}
