import { hash } from 'node:crypto';
import { START_POSITION, type StoredEvent } from '#kernel';
import { checkWorld, type RuleViolation } from './check-world.ts';
import type { Plan } from './plan.ts';
import { EndlessSimulationError } from './simulated-time.ts';
import { SimulatedWorld } from './simulated-world.ts';

export interface SimulationResult {
  readonly violations: readonly RuleViolation[];
  /** Hash of all events: the same for the same plan on any machine. */
  readonly hash: string;
  readonly events: readonly StoredEvent[];
  /** How often each fault occurred. */
  readonly faults: ReadonlyMap<string, number>;
  readonly world: SimulatedWorld;
}

/** Carries out a plan, and checks all rules. */
export async function runSimulation(plan: Plan): Promise<SimulationResult> {
  const world = new SimulatedWorld(plan);
  const violations: RuleViolation[] = [];
  const recordUnhandled = (error: unknown) => {
    violations.push({
      rule: 'no rejection is unhandled',
      detail: error instanceof Error ? `${error.stack}` : String(error),
    });
  };
  process.on('unhandledRejection', recordUnhandled);
  try {
    await world.run();
    violations.push(...(await checkWorld(world)));
  } catch (error) {
    if (!(error instanceof EndlessSimulationError)) throw error;
    violations.push({ rule: 'a simulation ends', detail: error.message });
  } finally {
    process.off('unhandledRejection', recordUnhandled);
  }
  const events: StoredEvent[] = [];
  for await (const batch of world.store.readAll(START_POSITION)) events.push(...batch.events);
  const text = events.map((event) =>
    JSON.stringify(event, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
  );
  return { violations, hash: hash('sha256', text.join('\n')), events, faults: world.faults, world };
}
