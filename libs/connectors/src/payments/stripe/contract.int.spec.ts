import { readPayments } from '#catalogue';
import { StripeBackend } from '#connectors';
import { getCoin, type PaymentCase, paymentBackendContract } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';

const CARD: readonly PaymentCase[] = [
  { coin: getCoin(readPayments(), 'USD'), kind: 'page', units: 2_500n, capabilities: ['waiting'] },
];

paymentBackendContract('Stripe', CARD, async () => {
  const sandbox = await startSandbox({ port: 0 });
  const settings = { stripeKey: 'sk_test_sandbox', stripeUrl: sandbox.url, stripeWebhookSecret: undefined };
  const backend = new StripeBackend(settings);
  const act = async (page: string, what: string) => {
    const session = page.split('/').at(-1) ?? '';
    const body = JSON.stringify({ do: what });
    await fetch(`${sandbox.url}/stripe/sessions/${session}`, { method: 'POST', body });
    return session;
  };
  return {
    backend,
    wallet: {
      pay: ({ value }, _units, _coin, { lowFee = false } = {}) => act(value, lowFee ? 'pay_later' : 'pay'),
      mine: async () => {},
    },
    async close() {
      await backend.close();
      await sandbox.close();
    },
  };
});

/** The key of a Stripe test account, for which only the tests without payments run. */
const { STRIPE_TEST_KEY: stripeKey } = process.env;
if (stripeKey) {
  const stripeUrl = 'https://api.stripe.com';
  const open = async () => {
    const backend = new StripeBackend({ stripeKey, stripeUrl, stripeWebhookSecret: undefined });
    return { backend, close: () => backend.close() };
  };
  paymentBackendContract('a real account of Stripe', CARD, open, 'without');
}
