import { type Customer, ProofCluster } from '../../cluster.ts';
import type { Attack, Finding } from './attack.ts';

/** Lower than by default, so that a slow machine comes to them in time. */
const LIMITS = {
  ACCOUNTS_PER_HOUR: '200',
  INVOICES_PER_HOUR_OF_KEY: '30',
  WRONG_CREDENTIALS_PER_MINUTE: '100',
};
const FLOOD_MS = 10_000;
const AT_ONCE = 32;
const LOOK_EVERY_MS = 20;
const WRONG = 'sk-0000000000000000000000';

interface Answers {
  given: number;
  refused: number;
  other: number;
}

/** Everything that costs nothing, as fast as it goes, while a customer goes on who pays. */
export const spam: Attack = {
  name: 'spam',
  what: 'accounts, unpaid invoices and wrong credentials by the thousand at two gateways, beside a customer who pays',
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 2, LIMITS);
    try {
      const customer = await cluster.customer(5);
      const quiet = await pays(cluster, customer, FLOOD_MS / 2);
      const stop = AbortSignal.timeout(FLOOD_MS);
      const floods = Promise.all([
        flood(cluster, stop, (api) => send(api, '/accounts/create', { method: 'POST' })),
        flood(cluster, stop, (api) => topUp(api, customer)),
        flood(cluster, stop, (api) => send(api, '/credits/balance', posted(WRONG))),
      ]);
      const loud = await pays(cluster, customer, FLOOD_MS);
      const [accounts, invoices, wrong] = await floods;
      const { output } = await cluster.ledger('verify');
      const limited = accounts.given < 200 && invoices.given < 30 && wrong.given === 0;
      const refused = [accounts, invoices, wrong].every((each) => each.refused > 0);
      const unlimited = quiet.failed + loud.failed === 0;
      return {
        held: limited && refused && unlimited && output.includes('drift 0'),
        measured: [
          `${accounts.given} accounts, then ${accounts.refused} times 429; ${invoices.given} invoices, then ${invoices.refused}`,
          `${wrong.refused} wrong credentials 429, ${wrong.other} 401; ${loud.served} paid answers, ${loud.failed} failed`,
          `p99 ${loud.p99.toFixed(0)} ms beside ${quiet.p99.toFixed(0)} ms without the flood`,
        ].join('; '),
      };
    } finally {
      await cluster.stop();
    }
  },
};

async function flood(
  { gateways }: ProofCluster,
  stop: AbortSignal,
  ask: (api: string) => Promise<number>,
): Promise<Answers> {
  const answers: Answers = { given: 0, refused: 0, other: 0 };
  const one = async (api: string) => {
    while (!stop.aborted) {
      const status = await ask(api);
      if (status < 300) answers.given++;
      else if (status === 429) answers.refused++;
      else answers.other++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => one(gateways[i % gateways.length] as string)));
  return answers;
}

/** One request after the other. */
async function pays({ gateways }: ProofCluster, { apiKey }: Customer, forMs: number) {
  const waits: number[] = [];
  let failed = 0;
  for (const until = performance.now() + forMs; performance.now() < until; ) {
    const began = performance.now();
    const messages = [{ role: 'user', content: '[[sandbox tokens=1]]' }];
    const api = gateways[waits.length % gateways.length] as string;
    const asked = posted(apiKey, { model: 'openai/gpt-5-mini', messages });
    if ((await send(api, '/v1/chat/completions', asked)) !== 200) failed++;
    waits.push(performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  waits.sort((a, b) => a - b);
  return { served: waits.length - failed, failed, p99: waits[Math.floor(waits.length * 0.99)] ?? 0 };
}

function topUp(api: string, { apiKey }: Customer): Promise<number> {
  return send(api, '/topup/create/btc-lightning', posted(apiKey, { amount: 1, currency: 'USD' }));
}

function posted(apiKey: string, body: object = {}): RequestInit {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  return { method: 'POST', headers, body: JSON.stringify(body) };
}

async function send(api: string, route: string, request: RequestInit): Promise<number> {
  const answer = await fetch(`${api}${route}`, request);
  await answer.arrayBuffer();
  return answer.status;
}
