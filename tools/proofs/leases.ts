/**
 * `npm run prove:leases`: the leading projector and sagas are paused with SIGSTOP, which closes no connection. Standby
 * processes take over within 15 s, and work on after the paused ones continue. Then the new leaders are killed, and the
 * first leaders take over again. The hold of a paused gateway is released within 25 s. When the gateway continues, it
 * ends the response without a charge and serves new requests. Afterwards the ledger verifies with a drift of 0.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster, post } from '../cluster.ts';
import { createRoleChecks, measureMs, type RoleCheck, waitUntil } from './role-checks.ts';

const TAKEN_OVER_WITHIN_MS = 15_000;
/** Gives a process that continues time for the work that it was about to do. */
const AWAKE_DELAY_MS = 2_000;
const CREDIT_USD = 1;
/** The presence of a paused gateway expires after ten seconds. Ten seconds later, its holds are released. */
const FREED_WITHIN_MS = 25_000;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const print = (line: string) => void process.stdout.write(`${line}\n`);

/** Pauses the leader, lets it continue, then kills the new leader. @returns whether both takeovers were in time */
async function prove(cluster: ProofCluster, customer: Customer, role: string, work: RoleCheck): Promise<boolean> {
  const first = cluster.processes.get(role)?.pid as number;
  const second = `${role} 2`;
  await cluster.startRole(role, second);
  process.kill(first, 'SIGSTOP');
  const stopped = await measureMs(work(customer));
  process.kill(first, 'SIGCONT');
  await sleep(AWAKE_DELAY_MS);
  await work(customer);
  await cluster.processes.get(second)?.kill();
  cluster.processes.delete(second);
  const killed = await measureMs(work(customer));
  const [afterStop, afterKill] = [stopped, killed].map((milliseconds) => (milliseconds / 1000).toFixed(1));
  print(`${role}: taken over ${afterStop} s after SIGSTOP, ${afterKill} s after SIGKILL`);
  return Math.max(stopped, killed) <= TAKEN_OVER_WITHIN_MS;
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
  try {
    const customer = await cluster.createCustomer(CREDIT_USD);
    let inTime = true;
    for (const [role, work] of Object.entries(createRoleChecks(cluster))) {
      inTime = (await prove(cluster, customer, role, work)) && inTime;
    }
    inTime = (await proveGateway(cluster)) && inTime;
    const { code, output } = await cluster.runLedger('verify');
    print(output.trim());
    return inTime && code === 0;
  } finally {
    for (const { pid } of cluster.processes.values()) process.kill(pid, 'SIGCONT');
    await cluster.stop();
  }
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-leases-'));
if (!(await proveAll(dataDir))) process.exitCode = 1;
await rm(dataDir, { recursive: true });
