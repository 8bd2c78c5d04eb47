import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EventStoreDbDouble } from '../../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';
import { ProofCluster } from '../../cluster.ts';
import { charged } from '../clients/charged.ts';
import type { Attack, Finding } from './attack.ts';

const MODEL = 'openai/gpt-5-mini';
const REFUSED = 60;
const SERVED = 15;
const WORDS = 'x'.repeat(60_000);
/** What the event store is configured to take at once: some facts, and never all that end together. */
const MAX_APPEND_BYTES = 6_000;

const ANSWER = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'gpt-5-mini',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 },
};

/** A vendor ends all requests of an account in one moment, most of them with 60 KB of error text. */
export const largeFacts: Attack = {
  name: 'large-facts',
  what: `${REFUSED} requests refused with 60 KB each and ${SERVED} served end at once; EventStoreDB takes ${MAX_APPEND_BYTES} bytes`,
  async run(directory): Promise<Finding> {
    const store = await EventStoreDbDouble.start();
    const vendor = await openVendor(REFUSED + SERVED);
    const cluster = await ProofCluster.start(directory, 1, {
      EVENTSTORE_URL: store.connectionString,
      OPENAI_BASE_URL: vendor.url,
    });
    try {
      const customer = await cluster.customer(20);
      const { balance } = await cluster.balance(customer);
      store.takeAtMost(MAX_APPEND_BYTES);
      const ask = (content: string) => status(cluster.gateways[0] as string, customer.apiKey, content);
      const questions = [...Array(REFUSED).fill('refuse'), ...Array(SERVED).fill('serve')];
      const statuses = await Promise.all(questions.map(ask));
      const { served, heldUsd, fromBalance, inHistory } = await charged(cluster, customer, balance, SERVED);
      const { output } = await cluster.ledger('verify');
      const answered = statuses.filter((each) => each === 200).length;
      const well = answered === SERVED && served === SERVED && heldUsd === 0 && fromBalance > 0n;
      return {
        held: well && fromBalance === inHistory && output.includes('drift 0'),
        measured: `${served} of ${answered} answers charged, ${heldUsd} USD still held`,
      };
    } finally {
      await cluster.stop();
      vendor.close();
      store.stop();
    }
  },
};

/** Answers when so many requests have come, all of them at once. */
async function openVendor(together: number): Promise<{ readonly url: string; close(): void }> {
  const waiting: (() => void)[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    waiting.push(() => answer(response, body.includes('refuse')));
    if (waiting.length >= together) for (const each of waiting) each();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, close };
}

function answer(response: ServerResponse, refuses: boolean): void {
  response.writeHead(refuses ? 400 : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(refuses ? { error: { message: WORDS, type: 'invalid_request_error' } } : ANSWER));
}

async function status(api: string, apiKey: string, content: string): Promise<number> {
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, max_tokens: 100, messages: [{ role: 'user', content }] }),
  });
  await response.arrayBuffer();
  return response.status;
}
