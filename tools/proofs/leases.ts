/**
 * `npm run prove:leases [-- WAY]`: the leading projector and sagas are disabled in eight ways, such as SIGSTOP or a
 * changed password. Each time the standby has all leases and works within 15 s, and continues to work after the cause
 * has ended. With WAY, only the ways whose description contains this text are tried. The hold of a paused gateway is
 * released within 25 s. When the gateway continues, it ends the response without a charge and serves new requests.
 * Afterwards the ledger verifies with a drift of 0.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '#foundation';
import { type Customer, ProofCluster, post } from '../cluster.ts';
import { createLeaderRole, DISABLING_WAYS, removeLeader, startLeader } from './leases/disable-leader.ts';
import { createRoleChecks, isLeader, measureMs, type RoleCheck, waitUntil } from './role-checks.ts';

const [WAY = ''] = process.argv.slice(2);
const TAKEN_OVER_WITHIN_MS = 15_000;
/** Gives a leader that is no longer disabled time for the work that it was about to do. */
const AWAKE_DELAY_MS = 2_000;
const CREDIT_USD = 1;
/** The presence of a paused gateway expires after ten seconds. Ten seconds later, its holds are released. */
const FREED_WITHIN_MS = 25_000;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const print = (line: string) => void process.stdout.write(`${line}\n`);

interface Takeover {
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  readonly databaseUrl: string;
  readonly admin: pg.Client;
}

/** Returns the leases of a role. A lease that another process has acquired has another token. */
async function listLeases(admin: pg.Client, role: string): Promise<ReadonlySet<string>> {
  const { rows } = await admin.query<{ readonly lease: string }>(
    `select name || ' ' || held as lease from public.leases where (name = 'projector') = ($1 = 'projector')`,
    [role],
  );
  return new Set(rows.map(({ lease }) => lease));
}

/**
 * Disables a leader in each of the ways while another process stands by.
 * @returns whether all takeovers were in time
 */
async function proveRole(takeover: Takeover, role: string, work: RoleCheck): Promise<boolean> {
  const { cluster, customer, ...database } = takeover;
  let areInTime = true;
  for (const [way, disable] of Object.entries(DISABLING_WAYS).filter(([description]) => description.includes(WAY))) {
    const leader = await startLeader(role, cluster.environment, database);
    try {
      await cluster.stopRole(role);
      const { health } = JSON.parse(leader.process.readyLine) as { health: string };
      await waitUntil(() => isLeader(health));
      await cluster.startRole(role); // on standby
      const heldBefore = await listLeases(database.admin, role);
      const enable = await disable(leader);
      const hasMoved = async () => (await listLeases(database.admin, role)).isDisjointFrom(heldBefore);
      const milliseconds = await measureMs(Promise.all([work(customer), waitUntil(hasMoved)])).finally(enable);
      await sleep(AWAKE_DELAY_MS);
      await work(customer);
      print(`${role}: taken over in ${(milliseconds / 1000).toFixed(1)} s from a leader that ${way}`);
      areInTime &&= milliseconds <= TAKEN_OVER_WITHIN_MS;
    } finally {
      await removeLeader(leader);
    }
  }
  return areInTime;
}

/**
 * Pauses a gateway during a response.
 * @returns whether the hold was released in time, and the response ended with an error and was not charged
 */
async function proveGateway(cluster: ProofCluster): Promise<boolean> {
  const { pid, readyLine } = await cluster.startRole('gateway', 'gateway 2');
  const { api } = JSON.parse(readyLine) as { api: string };
  const customer = await cluster.createCustomer(CREDIT_USD);
  const before = await cluster.fetchBalance(customer);
  // The response costs more than the first hold. So the gateway must extend the hold, and finds that it has ended.
  const content = '[[sandbox tokens=20000 chunk_delay=40]]';
  const body = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content }], stream: true };
  const headers = { authorization: `Bearer ${customer.apiKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${api}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
  if ((await cluster.fetchBalance(customer)).held_usd === 0) throw new Error('nothing was held');
  process.kill(pid, 'SIGSTOP');
  const freed = await measureMs(waitUntil(async () => (await cluster.fetchBalance(customer)).held_usd === 0));
  process.kill(pid, 'SIGCONT');
  const ended = await response.text();
  const after = await cluster.fetchBalance(customer);
  const chat = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'hello' }] };
  await waitUntil(async () => (await post(`${api}/v1/chat/completions`, chat, customer.apiKey)).id !== undefined);
  await cluster.stopRole('gateway 2');
  const unpaid = after.balance === before.balance;
  print(
    `gateway: its hold was released ${(freed / 1000).toFixed(1)} s after SIGSTOP; its response was ${unpaid ? 'not ' : ''}charged`,
  );
  return freed <= FREED_WITHIN_MS && unpaid && ended.includes('is no longer held');
}

async function proveAll(dataDir: string): Promise<boolean> {
  const cluster = await ProofCluster.start(dataDir, 1, { LOG_LEVEL: 'info' });
  const postgres = await startEmbeddedPostgres(dataDir);
  const admin = new pg.Client(Object.assign(new URL(postgres.url), { username: 'postgres' }).href);
  try {
    await admin.connect();
    await createLeaderRole(admin, postgres.url);
    const customer = await cluster.createCustomer(CREDIT_USD);
    let inTime = true;
    for (const [role, work] of Object.entries(createRoleChecks(cluster))) {
      inTime = (await proveRole({ cluster, customer, databaseUrl: postgres.url, admin }, role, work)) && inTime;
    }
    if (WAY === '') inTime = (await proveGateway(cluster)) && inTime;
    const { code, output } = await cluster.runLedger('verify');
    print(output.trim());
    return inTime && code === 0;
  } finally {
    for (const { pid } of cluster.processes.values()) process.kill(pid, 'SIGCONT');
    await admin.end();
    await cluster.stop();
    await postgres.close();
  }
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-leases-'));
if (!(await proveAll(dataDir))) process.exitCode = 1;
await rm(dataDir, { recursive: true });
