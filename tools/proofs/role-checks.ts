/** What the projector and the sagas are there for, as a customer sees it. */
import { type Customer, type ProofCluster, post } from '../cluster.ts';

const GIVEN_UP_AFTER_MS = 60_000;
const POLL_INTERVAL_MS = 50;
const CREDIT_USD = 1;

/** Waits for what shows that a role works. */
export type RoleCheck = (customer: Customer) => Promise<void>;

/** What each role is there for: a request shows up in the history, a payment is credited (which shows what was projected). */
export function createRoleChecks(cluster: ProofCluster): Readonly<Record<string, RoleCheck>> {
  const [api = ''] = cluster.gateways;
  const countHistory = async ({ apiKey }: Customer): Promise<number> => {
    const headers = { authorization: `Bearer ${apiKey}` };
    const response = await fetch(`${api}/queries/history?page=1&page_count=100`, { headers });
    return ((await response.json()) as { data: unknown[] }).data.length;
  };
  let chats = 0;
  return {
    async projector(customer) {
      const chat = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'hello' }], max_tokens: 16 };
      const { id } = await post(`${api}/v1/chat/completions`, chat, customer.apiKey);
      if (id === undefined) throw new Error('a chat was not answered');
      chats++;
      await waitUntil(async () => (await countHistory(customer)) === chats);
    },
    sagas: (customer) => cluster.fund(customer, CREDIT_USD),
  };
}

/** @throws when that takes longer than a minute */
export async function waitUntil(hasHappened: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + GIVEN_UP_AFTER_MS;
  while (!(await hasHappened())) {
    if (performance.now() > deadline) throw new Error('what was waited for did not happen');
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

/** How many milliseconds that takes. */
export async function measureMs(work: Promise<void>): Promise<number> {
  const started = performance.now();
  await work;
  return performance.now() - started;
}
