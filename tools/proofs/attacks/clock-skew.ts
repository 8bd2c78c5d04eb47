import { ProofCluster } from '../../cluster.ts';
import { waitForCharges } from '../clients/charged.ts';
import type { Attack, Finding } from './attack.ts';

const MODEL = 'openai/gpt-5-mini';
const TWENTY_MINUTES_MS = 20 * 60_000;
const REQUESTS_PER_GATEWAY = 8;
/**
 * Outlasts several sweeps for expired holds. A hold with an incorrect expiry would end before its response is complete.
 */
const SLOW_PROMPT = '[[sandbox tokens=30 chunks=30 chunk_delay=100]]';

/** Gateways on hosts with skewed clocks, and sagas that end expired holds by an accurate one. */
export const clockSkew: Attack = {
  name: 'clock-skew',
  description: 'gateways whose clocks are 20 minutes slow and fast serve responses of 3 s',
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 1);
    try {
      const customer = await cluster.createCustomer(5);
      await cluster.addSettings(createSkewedClockEnv(-TWENTY_MINUTES_MS)).startRole('gateway', 'gateway slow');
      await cluster.addSettings(createSkewedClockEnv(TWENTY_MINUTES_MS)).startRole('gateway', 'gateway fast');
      const { balance } = await cluster.fetchBalance(customer);
      const [accurateApi, ...skewedApis] = cluster.gateways;
      const requests = skewedApis.flatMap((api) =>
        Array.from({ length: REQUESTS_PER_GATEWAY }, () => sendChat(api, customer.apiKey)),
      );
      const completed = (await Promise.all(requests)).filter(Boolean).length;
      const { served, balanceUsd } = await waitForCharges(cluster, customer, balance, { served: completed });
      const ready = await Promise.all([accurateApi as string, ...skewedApis].map(isReady));
      const { output } = await cluster.addSettings({ NODE_OPTIONS: '' }).runLedger('verify');
      const held =
        completed === requests.length && served === completed && balanceUsd > 0n && output.includes('drift 0');
      return {
        hasPassed: held && ready.join() === 'true,false,false',
        measurements: `${served} of ${completed} responses charged; ready: with the accurate clock ${ready[0]}, with skewed ones ${ready.slice(1).join(' and ')}`,
      };
    } finally {
      await cluster.stop();
    }
  },
};

/** Simulates a host with a skewed clock. Only `Date` is replaced: timers and `performance` use a monotonic clock. */
function createSkewedClockEnv(milliseconds: number): Readonly<Record<string, string>> {
  const code = `const D=Date;globalThis.Date=class extends D{constructor(...a){a.length?super(...a):super(D.now()+${milliseconds})}static now(){return D.now()+${milliseconds}}}`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
}

/** @returns whether the response was complete */
async function sendChat(api: string, apiKey: string): Promise<boolean> {
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: SLOW_PROMPT }] }),
  });
  return (await response.text()).endsWith('data: [DONE]\n\n');
}

async function isReady(api: string): Promise<boolean> {
  return (await fetch(`${api}/health/ready`)).ok;
}
