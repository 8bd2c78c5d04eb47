/** Checks from a customer's view that the projector and the sagas are working. */
import { type Customer, type ProofCluster, post } from '../cluster.ts';

const GIVEN_UP_AFTER_MS = 60_000;
const POLL_INTERVAL_MS = 50;
const CREDIT_USD = 1;

/** Creates work for a role and waits until the role has done it. */
export type RoleCheck = (customer: Customer) => Promise<void>;

/** The projector adds a request to the history; the sagas credit a payment. */
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
      if (id === undefined) throw new Error('a chat got no completion');
      chats++;
      await waitUntil(async () => (await countHistory(customer)) === chats);
    },
    sagas: (customer) => cluster.fund(customer, CREDIT_USD),
  };
}

/** Polls until `hasHappened` returns true. @throws after a minute */
export async function waitUntil(hasHappened: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + GIVEN_UP_AFTER_MS;
  while (!(await hasHappened())) {
    if (performance.now() > deadline) throw new Error('the expected condition was not met within a minute');
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

export async function measureMs(work: Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work;
  return performance.now() - started;
}

/** Whether the process with this health address holds all leases of its role. */
export async function isLeader(health: string): Promise<boolean> {
  const report = (await (await fetch(`${health}/health/ready`)).json()) as {
    readonly checks: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
  const { projections, workflows } = report.checks;
  if (projections) return projections.leading === true;
  const [standbyNames, unableNames] = [workflows?.standing_by, workflows?.unable];
  return [standbyNames, unableNames].every((names) => Array.isArray(names) && names.length === 0);
}
