/**
 * `npm run prove:races`: many concurrent requests on a balance that pays for only some of them, with one gateway and
 * with three on the same stores. Exactly the affordable number is served, and the balance ends at 0.
 *
 * With `EVENTSTORE_URL`, events are stored on that server. With `PROVE_EVENTSTORE_START` and
 * `PROVE_EVENTSTORE_PID_FILE`, the server is also frozen and killed during additional races. Requests that get 503 are
 * then retried, and more requests spend the rest of the balance. Exactly the affordable number is charged, and every
 * served request is charged once.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster } from '../cluster.ts';
import { formatStoreName } from '../stores.ts';
import { countCharges } from './clients/charged.ts';
import { type EventStoreServer, openServerToKill } from './eventstore-server.ts';
import { waitUntil } from './role-checks.ts';

const REQUESTS = 1_000;
/** The price of one request to `countinghouse/flat`. */
const PRICE_USD = 0.01;
const AFFORDABLE_REQUESTS = 210;
/** How PostgreSQL rejects the connections with which the start of the cluster waits for it. */
const STARTING = 'FATAL:  the database system is starting up';

/** A fault of the event store during a race. */
interface Disturbance {
  readonly action: 'freeze' | 'kill';
  /** Half the duration of an undisturbed race; later, the balance may be used up. */
  readonly maxDelayMs: number;
}

interface Race {
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  readonly server: EventStoreServer | undefined;
}

interface RaceResponses {
  /** Request ids. */
  readonly served: string[];
  /** Numbers of the other responses, by status. */
  readonly statusCounts: Map<number, number>;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Sends concurrent requests and adds their responses to `responses`. @returns the number of requests to retry */
async function sendRequests(
  { cluster, customer, server }: Race,
  requests: number,
  responses: RaceResponses,
): Promise<number> {
  const apis = cluster.gateways;
  const headers = { authorization: `Bearer ${customer.apiKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'countinghouse/flat', messages: [{ role: 'user', content: 'race' }] });
  const isUnavailable = async (_: unknown, i: number) => {
    const sentAt = performance.now();
    const response = await fetch(`${apis[i % apis.length]}/v1/chat/completions`, { method: 'POST', headers, body });
    await response.arrayBuffer();
    const { status } = response;
    server?.recordResponse(sentAt, status === 200);
    if (status === 200) responses.served.push(response.headers.get('x-request-id') ?? '');
    else responses.statusCounts.set(status, (responses.statusCounts.get(status) ?? 0) + 1);
    return status === 503;
  };
  return (await Promise.all(Array.from({ length: requests }, isUnavailable))).filter(Boolean).length;
}

/** Sends all requests and retries those that get 503. Once nothing is held, spends the rest of the balance. */
async function sendUntilRejected(race: Race, disturbed: Promise<void>, responses: RaceResponses): Promise<void> {
  let retryCount = await sendRequests(race, REQUESTS, responses);
  await disturbed;
  while (retryCount > 0) retryCount = await sendRequests(race, retryCount, responses);
  await waitUntil(async () => (await race.cluster.fetchBalance(race.customer)).held_usd === 0);
  const { balance } = await race.cluster.fetchBalance(race.customer);
  await sendRequests(race, Math.round(balance / PRICE_USD), responses);
}

/** Runs one race. @returns whether responses, charges and balance were correct, and the duration of the requests */
async function prove(race: Race, gateways: number, disturbance: Disturbance | undefined) {
  const { cluster, customer, server } = race;
  const responses: RaceResponses = { served: [], statusCounts: new Map() };
  const startedAt = performance.now();
  if (disturbance) await sendUntilRejected(race, disturb(server as EventStoreServer, disturbance), responses);
  else await sendRequests(race, REQUESTS, responses);
  const tookMs = performance.now() - startedAt;
  const { balance, held_usd } = await cluster.fetchBalance(customer);
  // Before `verify`, which tries to stop the database when it ends. PostgreSQL logs that other processes use it.
  const errors = await listDatabaseErrors(cluster);
  const verified = await cluster.runLedger('verify');
  const charges = await countCharges(cluster, customer); // `verify` has waited until the read models have all events
  const { served, statusCounts } = responses;
  const otherStatuses = [...statusCounts].map(([status, times]) => `${times} × ${status}`).join(', ');
  const disturbanceText = disturbance ? `, event store: ${disturbance.action}` : '';
  print(
    `${gateways} gateway(s)${disturbanceText}: ${served.length} of ${REQUESTS} served (${otherStatuses}), ${charges.size} charged, ${AFFORDABLE_REQUESTS} affordable, balance ${balance} USD, held ${held_usd} USD`,
  );
  print(verified.output.trim().split('\n').at(-1) ?? '');
  print(`${errors.length} errors in the log of PostgreSQL${errors.length > 0 ? `, such as ${errors[0]}` : ''}`);
  const once = charges.size === AFFORDABLE_REQUESTS && served.every((id) => charges.get(id) === 1);
  const expected = disturbance ? [402, 503] : [402];
  const hasExpectedStatuses = [...statusCounts.keys()].every((status) => expected.includes(status));
  const exact = disturbance ? served.length <= AFFORDABLE_REQUESTS : served.length === AFFORDABLE_REQUESTS;
  return {
    isRight:
      once &&
      hasExpectedStatuses &&
      exact &&
      balance === 0 &&
      held_usd === 0 &&
      verified.code === 0 &&
      errors.length === 0,
    tookMs,
  };
}

/** Returns what PostgreSQL logged as errors. Concurrent requests of one account lose appends, which is no error. */
async function listDatabaseErrors({ dataDir }: ProofCluster): Promise<readonly string[]> {
  const log = await readFile(path.join(dataDir, 'postgres.log'), 'utf8');
  return log.split('\n').filter((line) => /\b(ERROR|FATAL|PANIC):/.test(line) && !line.endsWith(STARTING));
}

async function disturb(server: EventStoreServer, { action, maxDelayMs }: Disturbance): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * maxDelayMs));
  await server[action]();
}

async function runRace(gateways: number, server?: EventStoreServer, disturbance?: Disturbance): Promise<number> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-races-'));
  const cluster = await ProofCluster.start(dataDir, gateways);
  try {
    await cluster.waitUntilReady();
    const customer = await cluster.createCustomer((AFFORDABLE_REQUESTS * PRICE_USD) / 1.05);
    const { isRight, tookMs } = await prove({ cluster, customer, server }, gateways, disturbance);
    if (!isRight) process.exitCode = 1;
    return tookMs;
  } finally {
    await cluster.stop();
    await rm(dataDir, { recursive: true });
  }
}

const server = await openServerToKill();
print(`events in ${formatStoreName(process.env)}`);
try {
  for (const gateways of [1, 3]) {
    const maxDelayMs = (await runRace(gateways, server)) / 2;
    for (const action of ['freeze', 'kill'] as const)
      if (server) await runRace(gateways, server, { action, maxDelayMs });
  }
  if (server && !server.isInTime(print)) process.exitCode = 1;
} finally {
  await server?.close();
}
