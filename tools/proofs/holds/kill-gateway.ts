import { createRandom } from './random.ts';
import type { HoldScene } from './scene.ts';
import { sleep, type Wave } from './wave.ts';

/** The responses of a wave last longer than this. */
const KILLED_WITHIN_MS = 14_000;
const MIN_DELAY_MS = 1_000;
const DOWN_MS = 2_000;

/** Kills one of the gateways during a wave, at a moment that depends on the seed, and starts it again. */
export async function killGateway({ cluster }: HoldScene, { seed, name }: Wave): Promise<void> {
  const random = createRandom(seed + name.length);
  await sleep(MIN_DELAY_MS + random() * (KILLED_WITHIN_MS - MIN_DELAY_MS));
  const gateways = [...cluster.processes.keys()].filter((role) => role.startsWith('gateway'));
  const victim = gateways[seed % gateways.length] as string;
  await cluster.processes.get(victim)?.kill();
  cluster.processes.delete(victim);
  await sleep(DOWN_MS);
  await cluster.startRole('gateway', victim);
}
