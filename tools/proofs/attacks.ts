/**
 * `npm run prove:attacks [-- NAME…]`: tests guarantees of docs/security.md whose tests are too slow for `npm test`:
 * floods, slow clients, lost hosts, skewed clocks, full stores. Runs the attacks one after the other against the build,
 * only on this host. Prints a table; the exit code is 1 if a guarantee is broken or an attack cannot be run.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Attack, Finding } from './attacks/attack.ts';
import { busyLog } from './attacks/busy-log.ts';
import { streamStateCache } from './attacks/cached-streams.ts';
import { catchingUp } from './attacks/catching-up.ts';
import { clockSkew } from './attacks/clock-skew.ts';
import { fullDisk } from './attacks/full-disk.ts';
import { heldConnections } from './attacks/held-connections.ts';
import { history } from './attacks/history.ts';
import { largeBodies } from './attacks/large-bodies.ts';
import { largeEvents } from './attacks/large-events.ts';
import { newConnections } from './attacks/new-connections.ts';
import { pooler } from './attacks/pooler.ts';
import { rollback } from './attacks/rollback.ts';
import { rollingRestart } from './attacks/rolling-restart.ts';
import { spam } from './attacks/spam.ts';
import { standby } from './attacks/standby.ts';
import { storedConversations } from './attacks/stored-conversations.ts';

const ATTACKS: readonly Attack[] = [
  busyLog,
  catchingUp,
  clockSkew,
  fullDisk,
  heldConnections,
  history,
  largeBodies,
  largeEvents,
  newConnections,
  pooler,
  rollback,
  rollingRestart,
  spam,
  standby,
  storedConversations,
  streamStateCache,
];

const print = (line: string) => void process.stdout.write(`${line}\n`);

async function runAttack(attack: Attack): Promise<Finding> {
  const directory = await mkdtemp(path.join(tmpdir(), `countinghouse-${attack.name}-`));
  try {
    return await attack.run(directory);
  } catch (error) {
    return { hasPassed: false, measurements: `failed: ${(error as Error).message}` };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function selectAttacks(names: readonly string[]): readonly Attack[] {
  const unknown = names.filter((name) => !ATTACKS.some((attack) => attack.name === name));
  if (unknown.length === 0) return ATTACKS.filter(({ name }) => names.length === 0 || names.includes(name));
  throw new Error(`unknown attack ${unknown.join(', ')}; known are ${ATTACKS.map(({ name }) => name).join(', ')}`);
}

print('| attack | passed | seconds | measurements |');
print('| --- | --- | --- | --- |');
for (const attack of selectAttacks(process.argv.slice(2))) {
  const started = performance.now();
  const { hasPassed, measurements } = await runAttack(attack);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  print(`| ${attack.name}: ${attack.description} | ${hasPassed ? 'yes' : '**no**'} | ${seconds} | ${measurements} |`);
  if (!hasPassed) process.exitCode = 1;
}
