import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FakeEventStoreDb } from '../../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';
import { ProofCluster } from '../../cluster.ts';
import { waitForCharges } from '../clients/charged.ts';
import type { Attack, Finding } from './attack.ts';

const MODEL = 'openai/gpt-5-mini';
const REJECTED_COUNT = 60;
const SERVED_COUNT = 15;
const ERROR_TEXT = 'x'.repeat(60_000);
/** The limit of the event store for one append. One event can fit; those of all requests together do not. */
const MAX_APPEND_BYTES = 6_000;

const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'gpt-5-mini',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 },
};

/** A provider ends all requests of an account at the same time, most of them with 60 KB of error text. */
export const largeEvents: Attack = {
  name: 'large-facts',
  description: `${REJECTED_COUNT} requests that a provider rejects with 60 KB each and ${SERVED_COUNT} served ones end at once; EventStoreDB accepts ${MAX_APPEND_BYTES} bytes per append`,
  async run(directory): Promise<Finding> {
    const store = await FakeEventStoreDb.start();
    const provider = await startProvider(REJECTED_COUNT + SERVED_COUNT);
    const cluster = await ProofCluster.start(directory, 1, {
      EVENTSTORE_URL: store.connectionString,
      OPENAI_BASE_URL: provider.url,
    });
    try {
      const customer = await cluster.createCustomer(20);
      const { balance } = await cluster.fetchBalance(customer);
      store.setMaxAppendBytes(MAX_APPEND_BYTES);
      const sendChat = (content: string) => fetchStatus(cluster.gateways[0] as string, customer.apiKey, content);
      const prompts = [...Array(REJECTED_COUNT).fill('refuse'), ...Array(SERVED_COUNT).fill('serve')];
      const statuses = await Promise.all(prompts.map(sendChat));
      const { served, heldUsd, balanceUsd, historyUsd } = await waitForCharges(cluster, customer, balance, {
        served: SERVED_COUNT,
      });
      const { output } = await cluster.runLedger('verify');
      const succeeded = statuses.filter((statusCode) => statusCode === 200).length;
      const hasPassed = succeeded === SERVED_COUNT && served === SERVED_COUNT && heldUsd === 0 && balanceUsd > 0n;
      return {
        hasPassed: hasPassed && balanceUsd === historyUsd && output.includes('drift 0'),
        measurements: `${served} of ${succeeded} responses charged, ${heldUsd} USD still held`,
      };
    } finally {
      await cluster.stop();
      provider.close();
      store.stop();
    }
  },
};

/** Starts a provider that responds to all requests at once, when `requestCount` of them have arrived. */
async function startProvider(requestCount: number): Promise<{ readonly url: string; close(): void }> {
  const waiting: (() => void)[] = [];
  const server = createServer(async (request, response) => {
    if (request.method === 'GET') return response.end('{}'); // a check of the key
    let body = '';
    for await (const chunk of request) body += chunk;
    waiting.push(() => sendResponse(response, body.includes('refuse')));
    if (waiting.length >= requestCount) for (const resume of waiting) resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, close };
}

function sendResponse(response: ServerResponse, refuses: boolean): void {
  response.writeHead(refuses ? 400 : 200, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify(refuses ? { error: { message: ERROR_TEXT, type: 'invalid_request_error' } } : COMPLETION),
  );
}

async function fetchStatus(api: string, apiKey: string, content: string): Promise<number> {
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, max_tokens: 100, messages: [{ role: 'user', content }] }),
  });
  await response.arrayBuffer();
  return response.status;
}
