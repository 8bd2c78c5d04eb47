import { ProofCluster } from '../../cluster.ts';
import { charged } from '../clients/charged.ts';
import type { Attack, Finding } from './attack.ts';

const MODEL = 'openai/gpt-5-mini';
const TWENTY_MINUTES_MS = 20 * 60_000;
/** Of each gateway. */
const ANSWERS = 8;
/** Several sweeps long: a hold whose time seems over would be ended before its answer. */
const ANSWER = '[[sandbox tokens=30 chunks=30 chunk_delay=100]]';

/** Gateways whose machines' clocks are wrong, beside sagas that end holds by theirs. */
export const clockSkew: Attack = {
  name: 'clock-skew',
  what: 'gateways 20 minutes behind and ahead of the sagas serve answers of 3 s',
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 1);
    try {
      const customer = await cluster.customer(5);
      await cluster.with(wrongBy(-TWENTY_MINUTES_MS)).startRole('gateway', 'gateway behind');
      await cluster.with(wrongBy(TWENTY_MINUTES_MS)).startRole('gateway', 'gateway ahead');
      const { balance } = await cluster.balance(customer);
      const [right, ...wrong] = cluster.gateways;
      const asked = wrong.flatMap((api) => Array.from({ length: ANSWERS }, () => ask(api, customer.apiKey)));
      const answered = (await Promise.all(asked)).filter(Boolean).length;
      const { served, fromBalance } = await charged(cluster, customer, balance, answered);
      const ready = await Promise.all([right as string, ...wrong].map(isReady));
      const { output } = await cluster.with({ NODE_OPTIONS: '' }).ledger('verify');
      const held = answered === asked.length && served === answered && fromBalance > 0n && output.includes('drift 0');
      return {
        held: held && ready.join() === 'true,false,false',
        measured: `${served} of ${answered} answers charged; ready: the right clock ${ready[0]}, the wrong ones ${ready.slice(1).join(' and ')}`,
      };
    } finally {
      await cluster.stop();
    }
  },
};

/** The clock of a process on a machine whose own is wrong: only `Date` reads that one. */
function wrongBy(milliseconds: number): Readonly<Record<string, string>> {
  const code = `const D=Date;globalThis.Date=class extends D{constructor(...a){a.length?super(...a):super(D.now()+${milliseconds})}static now(){return D.now()+${milliseconds}}}`;
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
}

/** Whether a whole answer came. */
async function ask(api: string, apiKey: string): Promise<boolean> {
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, stream: true, messages: [{ role: 'user', content: ANSWER }] }),
  });
  return (await response.text()).endsWith('data: [DONE]\n\n');
}

async function isReady(api: string): Promise<boolean> {
  return (await fetch(`${api}/health/ready`)).ok;
}
