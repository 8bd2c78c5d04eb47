/**
 * A customer pays for one chat at an installation whose directory is the argument, on the Node that runs this file. The
 * sandbox is that of the build that contains this file, because a production install has none.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { TEST_DAY } from '../../../libs/testing/src/world/test-catalogue.ts';
import { ProofCluster, post } from '../../cluster.ts';

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-chat-'));
const cluster = await ProofCluster.start(dataDir, 1, { CATALOGUE_DAY: TEST_DAY }, process.argv[2]);
try {
  const customer = await cluster.createCustomer(1);
  const before = (await cluster.fetchBalance(customer)).balance;
  const messages = [{ role: 'user', content: 'Hello' }];
  const chat = await post(
    `${cluster.gateways[0]}/v1/chat/completions`,
    { model: 'openai/gpt-5.4-mini', messages },
    customer.apiKey,
  );
  const { cost } = (chat.usage ?? {}) as { readonly cost?: number };
  const charged = before - (await cluster.fetchBalance(customer)).balance;
  const { code, output } = await cluster.runLedger('verify');
  const isCharged = cost !== undefined && cost > 0 && Math.abs(charged - cost) < 1e-9;
  if (!isCharged || code !== 0) throw new Error(`charged ${charged} USD: ${JSON.stringify(chat)}\n${output}`);
  process.stdout.write(`a chat on Node ${process.versions.node} was charged; ${output.trim().split('\n').at(-1)}\n`);
} finally {
  await cluster.stop();
  await rm(dataDir, { recursive: true });
}
