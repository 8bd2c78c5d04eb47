/**
 * `npm run prove:races`: many requests at once against a balance that affords only some of them, with one gateway and
 * with three on the same stores. Exactly as many are served as the balance affords, and it never falls below zero.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Cluster, post } from '../cluster.ts';

const REQUESTS = 1_000;
/** Of the model with a price per request. */
const PRICE_USD = 0.01;
const AFFORDED = 210;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function race(gateways: number): Promise<boolean> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-races-'));
  const cluster = await Cluster.start(dataDir, gateways);
  try {
    const customer = await cluster.customer((AFFORDED * PRICE_USD) / 1.05);
    const body = { model: 'countinghouse/flat', messages: [{ role: 'user', content: 'race' }] };
    const apis = cluster.gateways;
    const answers = await Promise.all(
      Array.from({ length: REQUESTS }, (_, i) =>
        post(`${apis[i % apis.length]}/v1/chat/completions`, body, customer.apiKey),
      ),
    );
    const served = answers.filter(({ choices }) => choices !== undefined).length;
    const refused = answers.filter(({ statusCode }) => statusCode === 402).length;
    const { balance, held_usd } = await cluster.balance(customer);
    const verified = await cluster.ledger('verify');
    const holds = served === AFFORDED && refused === REQUESTS - AFFORDED && balance === 0 && held_usd === 0;
    print(
      `${gateways} gateway(s): ${served} of ${REQUESTS} served, ${AFFORDED} afforded, balance ${balance} USD, held ${held_usd} USD`,
    );
    print(verified.output.trim().split('\n').at(-1) ?? '');
    return holds && verified.code === 0;
  } finally {
    await cluster.stop();
    await rm(dataDir, { recursive: true });
  }
}

for (const gateways of [1, 3]) if (!(await race(gateways))) process.exitCode = 1;
