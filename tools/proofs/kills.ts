/**
 * `npm run prove:kills [-- SECONDS]`: under load, processes are killed at random times with SIGKILL and started again,
 * including the database. Every request with a complete response is charged exactly once. The holds of a killed gateway
 * are released within 15 s, although they would expire only after minutes. The ledger verifies with a drift of 0.
 *
 * With `EVENTSTORE_URL`, events are stored on that server. With `PROVE_EVENTSTORE_START` and
 * `PROVE_EVENTSTORE_PID_FILE`, the server is also killed and frozen. No request that is sent during a freeze waits much
 * longer than five seconds, and no role ends by itself.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster } from '../cluster.ts';
import { formatStoreName } from '../stores.ts';
import { countCharges } from './clients/charged.ts';
import { type EventStoreServer, openServerToKill } from './eventstore-server.ts';

const LOAD_SECONDS = Number(process.argv[2] ?? 40);
const WORKERS = 24;
const CUSTOMERS = 3;
const CREDIT_USD = 900;
/** Responses that are in progress when their gateway is killed. */
const RUNNING_RESPONSES = 8;
/** The holds of a killed process are released ten seconds after its database connection has ended. */
const FREED_WITHIN_MS = 15_000;
const GIVEN_UP_AFTER_MS = 60_000;
const POLL_INTERVAL_MS = 50;
/** A role may fail to start while the event store elects its leader. It is then started again. */
const MAX_STARTS = 5;
const RESTART_DELAY_MS = 1_000;
const FREEZE_DELAY_MS = 200;
const ROLES = ['gateway 1', 'gateway 2', 'projector', 'sagas'];
const [KILLED_STORE, FROZEN_STORE] = ['eventstore', 'eventstore, frozen'];

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const print = (line: string) => void process.stdout.write(`${line}\n`);
const pick = <T>(choices: readonly T[]): T => choices[Math.floor(Math.random() * choices.length)] as T;

interface Load {
  /** Ids of the requests with a complete response, by customer. */
  readonly completedIds: Map<Customer, string[]>;
  sent: number;
  readonly server: EventStoreServer | undefined;
}

/** Starts workers that each send one request after the other until they are stopped. */
function startWorkers(cluster: ProofCluster, load: Load) {
  const shift = { isOver: false };
  const workers = Array.from({ length: WORKERS }, () => runWorker(cluster, load, shift));
  return {
    async stop(): Promise<void> {
      shift.isOver = true;
      await Promise.all(workers);
    },
  };
}

async function runWorker(cluster: ProofCluster, load: Load, shift: { readonly isOver: boolean }): Promise<void> {
  while (!shift.isOver) {
    const customer = pick([...load.completedIds.keys()]);
    const [api] = [pick(cluster.gateways)];
    if (!api) {
      await sleep(20);
      continue;
    }
    load.sent++;
    const sentAt = performance.now();
    const id = await sendRequest(api, customer, pick(KINDS)).catch(() => undefined); // killed
    load.server?.recordResponse(sentAt, id !== undefined);
    if (id) load.completedIds.get(customer)?.push(id);
  }
}

const KINDS = ['complete', 'stream', 'image'] as const;

/** @returns the id of the request; undefined if its response was incomplete */
async function sendRequest(
  api: string,
  { apiKey }: Customer,
  kind: (typeof KINDS)[number],
): Promise<string | undefined> {
  const stream = kind === 'stream';
  const directive = `[[sandbox latency=${Math.floor(Math.random() * 30)}`;
  const content = `${directive} tokens=8 chunk_delay=${stream ? 3 : 0}]]`;
  const chat = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content }], max_tokens: 16, stream };
  const image = { model: 'qwen/qwen-image', prompt: `${directive}]]` };
  const [route, body] = kind === 'image' ? ['images/generations', image] : ['chat/completions', chat];
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${api}/v1/${route}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  const complete = stream ? text.endsWith('data: [DONE]\n\n') && !text.includes('"error"') : text.endsWith('}');
  return response.status === 200 && complete ? (response.headers.get('x-request-id') ?? undefined) : undefined;
}

async function killVictim(cluster: ProofCluster, victim: string, load: Load): Promise<void> {
  if (victim === KILLED_STORE) return load.server?.kill();
  if (victim === FROZEN_STORE) return freeze(cluster, load);
  if (victim !== 'postgres') {
    await cluster.processes.get(victim)?.kill();
    await restartRole(cluster, victim);
    return;
  }
  process.kill(await cluster.readPostgresPid(), 'SIGKILL');
  // Every role notices that its database has ended, and ends too.
  const roles = [...cluster.processes].filter(([name]) => name !== 'sandbox');
  await Promise.all(roles.map(([, started]) => started.ended));
  for (const [name] of roles) await restartRole(cluster, name);
}

/** Freezes the event store, and starts more workers: the others wait until their responses are charged. */
async function freeze(cluster: ProofCluster, load: Load): Promise<void> {
  const frozen = load.server?.freeze();
  await sleep(FREEZE_DELAY_MS);
  const freezeCrew = startWorkers(cluster, load);
  await frozen;
  await freezeCrew.stop();
}

async function restartRole(cluster: ProofCluster, name: string): Promise<void> {
  cluster.processes.delete(name);
  for (let starts = 1; ; starts++) {
    try {
      await cluster.startRole(name.split(' ')[0] as string, name);
      return;
    } catch (error) {
      if (starts === MAX_STARTS) throw error;
      await sleep(RESTART_DELAY_MS);
    }
  }
}

/** @returns the roles that have ended without being killed */
async function listEndedRoles(cluster: ProofCluster): Promise<readonly string[]> {
  const checks = [...cluster.processes].map(async ([name, { ended }]) => {
    const still = Symbol();
    return (await Promise.race([ended, still])) === still ? [] : [name];
  });
  return (await Promise.all(checks)).flat();
}

/** Kills random processes under load, each at least once. @returns whether no role ended without being killed */
async function killUnderLoad(cluster: ProofCluster, load: Load): Promise<boolean> {
  const victims = [...ROLES, 'postgres', ...(load.server ? [KILLED_STORE, FROZEN_STORE] : [])] as string[];
  const end = performance.now() + LOAD_SECONDS * 1000;
  const kills = new Map<string, number>();
  const selfEnded: string[] = [];
  for (let round = 0; round < victims.length || performance.now() < end; round++) {
    await sleep(300 + Math.random() * 900);
    const victim = victims[round] ?? pick(victims);
    await killVictim(cluster, victim, load);
    kills.set(victim, (kills.get(victim) ?? 0) + 1);
    for (const name of await listEndedRoles(cluster)) {
      selfEnded.push(name);
      await restartRole(cluster, name);
    }
  }
  print(`killed: ${[...kills].map(([name, times]) => `${name} ${times}×`).join('; ')}`);
  if (selfEnded.length > 0) print(`ended by themselves: ${selfEnded.join(', ')}`);
  return selfEnded.length === 0;
}

async function prove(dataDir: string, server: EventStoreServer | undefined): Promise<boolean> {
  const cluster = await ProofCluster.start(dataDir, 2, { LOG_LEVEL: 'info' });
  try {
    await cluster.waitUntilReady();
    const load: Load = { completedIds: new Map(), sent: 0, server };
    for (let i = 0; i < CUSTOMERS; i++) load.completedIds.set(await cluster.createCustomer(CREDIT_USD), []);
    const workers = startWorkers(cluster, load);
    const hasNoUnexpectedEnds = await killUnderLoad(cluster, load);
    await workers.stop();
    for (const customer of load.completedIds.keys()) await waitUntilNothingHeld(cluster, customer);
    const releaseMs = await measureHoldReleaseMs(cluster);
    print(
      `the holds of ${RUNNING_RESPONSES} responses were released ${(releaseMs / 1000).toFixed(1)} s after the SIGKILL of their gateway`,
    );
    const results = [
      server?.isInTime(print) ?? true,
      hasNoUnexpectedEnds,
      releaseMs <= FREED_WITHIN_MS,
      await checkCharges(cluster, load),
    ];
    return results.every(Boolean);
  } finally {
    await cluster.stop();
  }
}

/** Kills a gateway with responses in progress. @returns milliseconds until all their holds have ended */
async function measureHoldReleaseMs(cluster: ProofCluster): Promise<number> {
  const customer = await cluster.createCustomer(CREDIT_USD);
  const [victim = '', process] = [...cluster.processes].find(([name]) => name.startsWith('gateway')) ?? [];
  const [api = ''] = cluster.gateways;
  const content = '[[sandbox tokens=4000 chunk_delay=1000]]';
  const body = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content }], max_tokens: 4_000, stream: true };
  const headers = { authorization: `Bearer ${customer.apiKey}`, 'content-type': 'application/json' };
  const request = { method: 'POST', headers, body: JSON.stringify(body) };
  await Promise.all(Array.from({ length: RUNNING_RESPONSES }, () => fetch(`${api}/v1/chat/completions`, request)));
  await process?.kill();
  cluster.processes.delete(victim);
  const killed = performance.now();
  if ((await cluster.fetchBalance(customer)).held_usd === 0) throw new Error('nothing was held');
  await waitUntilNothingHeld(cluster, customer);
  return performance.now() - killed;
}

async function waitUntilNothingHeld(cluster: ProofCluster, customer: Customer): Promise<void> {
  const deadline = performance.now() + GIVEN_UP_AFTER_MS;
  while ((await cluster.fetchBalance(customer)).held_usd !== 0) {
    if (performance.now() > deadline) throw new Error('money was still held after a minute');
    await sleep(POLL_INTERVAL_MS);
  }
}

async function checkCharges(cluster: ProofCluster, load: Load): Promise<boolean> {
  let completedCount = 0;
  let mischargedCount = 0;
  let held = 0;
  for (const [customer, ids] of load.completedIds) {
    const counts = await countCharges(cluster, customer);
    completedCount += ids.length;
    mischargedCount += ids.filter((id) => counts.get(id) !== 1).length;
    held += (await cluster.fetchBalance(customer)).held_usd;
  }
  const { code, output } = await cluster.runLedger('verify');
  print(
    `${load.sent} requests sent, ${completedCount} complete responses, ${mischargedCount} of them not charged exactly once, ${held} USD still held`,
  );
  print(output.trim());
  return completedCount > 0 && mischargedCount === 0 && held === 0 && code === 0;
}

const server = await openServerToKill();
print(`events in ${formatStoreName(process.env)}`);
const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-kills-'));
if (!(await prove(dataDir, server).finally(() => server?.close()))) process.exitCode = 1;
await rm(dataDir, { recursive: true });
