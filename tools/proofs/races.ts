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
import { storeName } from '../stores.ts';
import { chargesOf } from './clients/charged.ts';
import { type EventStoreServer, serverToKill } from './eventstore-server.ts';
import { until } from './works.ts';

const REQUESTS = 1_000;
/** Of the model with a price per request. */
const PRICE_USD = 0.01;
const AFFORDED = 210;

/** What is done to the server, and within how many milliseconds of a race: in its first half, as nothing is to be had later. */
interface Disturbance {
  readonly how: 'freeze' | 'kill';
  readonly withinMs: number;
}

interface Race {
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  readonly server: EventStoreServer | undefined;
}

interface Answers {
  /** Request ids. */
  readonly served: string[];
  /** How often each other status was the answer. */
  readonly refused: Map<number, number>;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Asks so often at once, and adds to the answers. @returns how many are to be asked again */
async function ask({ cluster, customer, server }: Race, requests: number, answers: Answers): Promise<number> {
  const apis = cluster.gateways;
  const headers = { authorization: `Bearer ${customer.apiKey}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'countinghouse/flat', messages: [{ role: 'user', content: 'race' }] });
  const unavailable = async (_: unknown, i: number) => {
    const began = performance.now();
    const response = await fetch(`${apis[i % apis.length]}/v1/chat/completions`, { method: 'POST', headers, body });
    await response.arrayBuffer();
    const { status } = response;
    server?.answered(began, status === 200);
    if (status === 200) answers.served.push(response.headers.get('x-request-id') ?? '');
    else answers.refused.set(status, (answers.refused.get(status) ?? 0) + 1);
    return status === 503;
  };
  return (await Promise.all(Array.from({ length: requests }, unavailable))).filter(Boolean).length;
}

/** Returns when nobody is told 503 any more, and nothing is held that somebody could have had. */
async function askUntilRefused(race: Race, disturbed: Promise<void>, answers: Answers): Promise<void> {
  let again = await ask(race, REQUESTS, answers);
  await disturbed;
  while (again > 0) again = await ask(race, again, answers);
  await until(async () => (await race.cluster.balance(race.customer)).held_usd === 0);
  const { balance } = await race.cluster.balance(race.customer);
  await ask(race, Math.round(balance / PRICE_USD), answers);
}

/** @returns whether the books were right, and for how many milliseconds 1,000 requests were answered */
async function prove(race: Race, gateways: number, disturbance: Disturbance | undefined) {
  const { cluster, customer, server } = race;
  const answers: Answers = { served: [], refused: new Map() };
  const began = performance.now();
  if (disturbance) await askUntilRefused(race, disturbed(server as EventStoreServer, disturbance), answers);
  else await ask(race, REQUESTS, answers);
  const tookMs = performance.now() - began;
  const { balance, held_usd } = await cluster.balance(customer);
  const verified = await cluster.ledger('verify');
  const charges = await chargesOf(cluster, customer); // read models have all facts, says the ledger
  const { served, refused } = answers;
  const others = [...refused].map(([status, times]) => `${times} × ${status}`).join(', ');
  const how = disturbance ? `, event store: ${disturbance.how}` : '';
  print(
    `${gateways} gateway(s)${how}: ${served.length} of ${REQUESTS} served (${others}), ${charges.size} charged, ${AFFORDED} afforded, balance ${balance} USD, held ${held_usd} USD`,
  );
  print(verified.output.trim().split('\n').at(-1) ?? '');
  const once = charges.size === AFFORDED && served.every((id) => charges.get(id) === 1);
  const expected = disturbance ? [402, 503] : [402];
  const told = [...refused.keys()].every((status) => expected.includes(status));
  const exact = disturbance ? served.length <= AFFORDED : served.length === AFFORDED;
  return { isRight: once && told && exact && balance === 0 && held_usd === 0 && verified.code === 0, tookMs };
}

async function disturbed(server: EventStoreServer, { how, withinMs }: Disturbance): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, Math.random() * withinMs));
  await server[how]();
}

async function race(gateways: number, server?: EventStoreServer, disturbance?: Disturbance): Promise<number> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-races-'));
  const cluster = await ProofCluster.start(dataDir, gateways);
  try {
    await cluster.ready();
    const customer = await cluster.customer((AFFORDED * PRICE_USD) / 1.05);
    const { isRight, tookMs } = await prove({ cluster, customer, server }, gateways, disturbance);
    if (!isRight) process.exitCode = 1;
    return tookMs;
  } finally {
    await cluster.stop();
    await rm(dataDir, { recursive: true });
  }
}

const server = await serverToKill();
print(`facts in ${storeName(process.env)}`);
try {
  for (const gateways of [1, 3]) {
    const withinMs = (await race(gateways, server)) / 2;
    for (const how of ['freeze', 'kill'] as const) if (server) await race(gateways, server, { how, withinMs });
  }
  if (server && !server.isInTime(print)) process.exitCode = 1;
} finally {
  await server?.close();
}
