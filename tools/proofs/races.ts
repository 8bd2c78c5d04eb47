/**
 * `npm run prove:races`: many requests at once against a balance that affords only some of them, with one gateway and
 * with three on the same stores. Exactly as many are served as the balance affords, and it never falls below zero.
 *
 * With `EVENTSTORE_URL` the facts are on that server; with `PROVE_EVENTSTORE_START` and `PROVE_EVENTSTORE_PID_FILE` it is frozen
 * in the middle of further races, and killed. Who is told 503 then asks again, until no more is afforded. Exactly what the balance
 * affords is charged, all that was served once.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster } from '../cluster.ts';
import { formatStoreName } from '../stores.ts';
import { countCharges } from './clients/charged.ts';
import { type EventStoreServer, openServerToKill } from './eventstore-server.ts';
import { waitUntil } from './role-checks.ts';

const REQUESTS = 1_000;
/** Of the model with a price per request. */
const PRICE_USD = 0.01;
const AFFORDABLE_REQUESTS = 210;

/** What is done to the server, and within how many milliseconds of a race: in its first half, as nothing is to be had later. */
interface Disturbance {
  readonly action: 'freeze' | 'kill';
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
  /** How often each other status was the answer. */
  readonly statusCounts: Map<number, number>;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Asks so often at once, and adds to the answers. @returns how many are to be asked again */
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

/** Returns when nobody is told 503 any more, and nothing is held that somebody could have had. */
async function sendUntilRejected(race: Race, disturbed: Promise<void>, responses: RaceResponses): Promise<void> {
  let retryCount = await sendRequests(race, REQUESTS, responses);
  await disturbed;
  while (retryCount > 0) retryCount = await sendRequests(race, retryCount, responses);
  await waitUntil(async () => (await race.cluster.fetchBalance(race.customer)).held_usd === 0);
  const { balance } = await race.cluster.fetchBalance(race.customer);
  await sendRequests(race, Math.round(balance / PRICE_USD), responses);
}

/** @returns whether the books were right, and for how many milliseconds 1,000 requests were answered */
async function prove(race: Race, gateways: number, disturbance: Disturbance | undefined) {
  const { cluster, customer, server } = race;
  const responses: RaceResponses = { served: [], statusCounts: new Map() };
  const startedAt = performance.now();
  if (disturbance) await sendUntilRejected(race, disturb(server as EventStoreServer, disturbance), responses);
  else await sendRequests(race, REQUESTS, responses);
  const tookMs = performance.now() - startedAt;
  const { balance, held_usd } = await cluster.fetchBalance(customer);
  const verified = await cluster.runLedger('verify');
  const charges = await countCharges(cluster, customer); // read models have all facts, says the ledger
  const { served, statusCounts } = responses;
  const otherStatuses = [...statusCounts].map(([status, times]) => `${times} × ${status}`).join(', ');
  const disturbanceText = disturbance ? `, event store: ${disturbance.action}` : '';
  print(
    `${gateways} gateway(s)${disturbanceText}: ${served.length} of ${REQUESTS} served (${otherStatuses}), ${charges.size} charged, ${AFFORDABLE_REQUESTS} afforded, balance ${balance} USD, held ${held_usd} USD`,
  );
  print(verified.output.trim().split('\n').at(-1) ?? '');
  const once = charges.size === AFFORDABLE_REQUESTS && served.every((id) => charges.get(id) === 1);
  const expected = disturbance ? [402, 503] : [402];
  const hasExpectedStatuses = [...statusCounts.keys()].every((status) => expected.includes(status));
  const exact = disturbance ? served.length <= AFFORDABLE_REQUESTS : served.length === AFFORDABLE_REQUESTS;
  return {
    isRight: once && hasExpectedStatuses && exact && balance === 0 && held_usd === 0 && verified.code === 0,
    tookMs,
  };
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
print(`facts in ${formatStoreName(process.env)}`);
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
