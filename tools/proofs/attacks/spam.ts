import { type Customer, ProofCluster } from '../../cluster.ts';
import type { Attack, Finding } from './attack.ts';

/** Lower than the defaults, so that a slow host reaches them in time. */
const LIMITS = {
  ACCOUNTS_PER_HOUR: '200',
  INVOICES_PER_HOUR_OF_KEY: '30',
  WRONG_CREDENTIALS_PER_MINUTE: '100',
};
const FLOOD_MS = 10_000;
const AT_ONCE = 32;
const REQUEST_INTERVAL_MS = 20;
const INVALID_KEY = 'sk-0000000000000000000000';

interface ResponseCounts {
  accepted: number;
  rejected: number;
  other: number;
}

/** Free requests as fast as possible, while a customer sends paid requests. */
export const spam: Attack = {
  name: 'spam',
  description:
    'thousands of requests for accounts, for invoices and with an invalid key, at two gateways that serve a customer',
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 2, LIMITS);
    try {
      const customer = await cluster.createCustomer(5);
      const baseline = await measureCustomerLatency(cluster, customer, FLOOD_MS / 2);
      const stop = AbortSignal.timeout(FLOOD_MS);
      const floods = Promise.all([
        flood(cluster, stop, (api) => send(api, '/accounts/create', { method: 'POST' })),
        flood(cluster, stop, (api) => topUp(api, customer)),
        flood(cluster, stop, (api) => send(api, '/credits/balance', createPostRequest(INVALID_KEY))),
      ]);
      const flooded = await measureCustomerLatency(cluster, customer, FLOOD_MS);
      const [accounts, invoices, invalidKeys] = await floods;
      const { output } = await cluster.runLedger('verify');
      const limited = accounts.accepted < 200 && invoices.accepted < 30 && invalidKeys.accepted === 0;
      const hasRejections = [accounts, invoices, invalidKeys].every((counts) => counts.rejected > 0);
      const unlimited = baseline.failed + flooded.failed === 0;
      return {
        hasPassed: limited && hasRejections && unlimited && output.includes('drift 0'),
        measurements: [
          `${accounts.accepted} accounts, then ${accounts.rejected} times 429; ${invoices.accepted} invoices, then ${invoices.rejected} times 429`,
          `invalid credentials: ${invalidKeys.rejected} times 429, ${invalidKeys.other} other errors; ${flooded.served} paid responses, ${flooded.failed} failed`,
          `p99 ${flooded.p99.toFixed(0)} ms, ${baseline.p99.toFixed(0)} ms without the flood`,
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
  sendRequest: (api: string) => Promise<number>,
): Promise<ResponseCounts> {
  const counts: ResponseCounts = { accepted: 0, rejected: 0, other: 0 };
  const runWorker = async (api: string) => {
    while (!stop.aborted) {
      const status = await sendRequest(api);
      if (status < 300) counts.accepted++;
      else if (status === 429) counts.rejected++;
      else counts.other++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => runWorker(gateways[i % gateways.length] as string)));
  return counts;
}

/** Sends the customer's requests one after the other. */
async function measureCustomerLatency({ gateways }: ProofCluster, { apiKey }: Customer, forMs: number) {
  const waits: number[] = [];
  let failed = 0;
  for (const until = performance.now() + forMs; performance.now() < until; ) {
    const sentAt = performance.now();
    const messages = [{ role: 'user', content: '[[sandbox tokens=1]]' }];
    const api = gateways[waits.length % gateways.length] as string;
    const request = createPostRequest(apiKey, { model: 'openai/gpt-5-mini', messages });
    if ((await send(api, '/v1/chat/completions', request)) !== 200) failed++;
    waits.push(performance.now() - sentAt);
    await new Promise((resolve) => setTimeout(resolve, REQUEST_INTERVAL_MS));
  }
  waits.sort((a, b) => a - b);
  return { served: waits.length - failed, failed, p99: waits[Math.floor(waits.length * 0.99)] ?? 0 };
}

function topUp(api: string, { apiKey }: Customer): Promise<number> {
  return send(api, '/topup/create/btc-lightning', createPostRequest(apiKey, { amount: 1, currency: 'USD' }));
}

function createPostRequest(apiKey: string, body: object = {}): RequestInit {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  return { method: 'POST', headers, body: JSON.stringify(body) };
}

async function send(api: string, route: string, request: RequestInit): Promise<number> {
  const response = await fetch(`${api}${route}`, request);
  await response.arrayBuffer();
  return response.status;
}
