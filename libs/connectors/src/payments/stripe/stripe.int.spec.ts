import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Stripe } from 'stripe';
import { readPayments } from '#catalogue';
import { StripeBackend } from '#connectors';
import { getCoin } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { respondWithJson, type StubHandler, StubServer } from '../../../../testing/src/servers/stub-server.ts';
import { StripeHttpClient } from './stripe-http-client.ts';

const KEY = 'sk_test_planted77ab';
const SECRET = 'whsec_planted';
const USD = getCoin(readPayments(), 'USD');

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let backend: StripeBackend;
let opened: AsyncDisposableStack;
beforeEach(async () => {
  opened = new AsyncDisposableStack();
  sandbox = await startSandbox({ port: 0 });
  opened.defer(() => sandbox.close());
  backend = connect(sandbox.url);
});
afterEach(() => opened.disposeAsync());

function connect(stripeUrl: string, stripeWebhookSecret: string | undefined = SECRET): StripeBackend {
  const account = new StripeBackend({ stripeKey: KEY, stripeUrl, stripeWebhookSecret });
  opened.defer(() => account.close());
  return account;
}

/** Returns the address of a fake Stripe with this handler. */
async function start(answer: StubHandler): Promise<string> {
  const server = new StubServer();
  opened.defer(() => server.close());
  server.handler = answer;
  return server.listen();
}

let topups = 0;
const asking = (more: object = {}) => ({
  topupId: `topup${topups++}`,
  coin: USD,
  kind: 'page' as const,
  units: 2_500n,
  memo: 'Countinghouse top-up',
  expirySeconds: 3_600,
  confirmations: 0,
  returnUrl: 'https://gateway.example/topup/checkout/x',
  ...more,
});

type Event = { readonly id: string; readonly data: { readonly object: { readonly id: string } } };

async function act(session: string, what: string, more: object = {}): Promise<readonly Event[]> {
  const body = JSON.stringify({ do: what, ...more });
  const response = await fetch(`${sandbox.url}/stripe/sessions/${session}`, { method: 'POST', body });
  if (!response.ok) throw new Error(await response.text());
  return ((await response.json()) as { events: Event[] }).events;
}

type Act = string | readonly [what: string, more: object];

/** Creates a session and performs the actions on it. */
async function sessionWith(...acts: readonly Act[]): Promise<string> {
  const { reference } = await backend.createPayment(asking());
  for (const each of acts) await (typeof each === 'string' ? act(reference, each) : act(reference, ...each));
  return reference;
}

const changes = (all: readonly { readonly units: bigint; readonly why: string }[] = []) =>
  all.map(({ units, why }) => [Number(units), why]);

describe('a payment request', () => {
  test('creates a session with exactly the requested amount and the id of the top-up', async () => {
    const { reference, destination } = await backend.createPayment(asking({ topupId: 'mine' }));
    expect(destination).toEqual({ kind: 'page', value: `${sandbox.url}/stripe/pay/${reference}` });
    const api = new Stripe(KEY, { host: '127.0.0.1', port: new URL(sandbox.url).port, protocol: 'http' });
    expect(await api.checkout.sessions.retrieve(reference)).toMatchObject({
      amount_total: 2_500,
      currency: 'usd',
      client_reference_id: 'mine',
      allow_promotion_codes: false,
      metadata: { topup: 'mine', cents: '2500' },
      adaptive_pricing: { enabled: false },
      allowed_payment_method_types: ['card'],
      success_url: 'https://gateway.example/topup/checkout/x',
    });
  });

  test('is repeated if its response is lost, and creates only one session', async () => {
    const made: unknown[] = [];
    const forgetful = await start(async (response, { url, method = '', headers }, body) => {
      const answer = await fetch(`${sandbox.url}${url}`, { method, headers: headers as Record<string, string>, body });
      const session = (await answer.json()) as { id?: string };
      if (made.push(session.id) === 1) response.destroy();
      else respondWithJson(session, answer.status)(response, undefined as never, '');
    });
    const { reference } = await connect(forgetful).createPayment(asking());
    expect(made).toEqual([reference, reference]);
  });

  test('is accepted with an expiry that is shorter than Stripe allows', async () => {
    await expect(backend.createPayment(asking({ expirySeconds: 60 }))).resolves.toMatchObject({
      destination: { kind: 'page' },
    });
  });
});

describe('the payment of a session', () => {
  test.each<[what: string, acts: readonly Act[], found: readonly unknown[]]>([
    ['an unpaid session', [], []],
    ['an expired session', ['expire'], []],
    ['a refunded payment of another amount', [['pay', { total: 2_000 }], 'refund'], []],
    ['a pending payment', ['pay_later'], ['pending', [], []]],
    ['a failed payment', ['pay_later', 'fail'], []],
    ['an immediate payment', ['pay'], ['final', [[103, 'Stripe, fee']], []]],
    ['a delayed payment', ['pay_later', 'succeed'], ['final', [[103, 'Stripe, fee']], []]],
    [
      'a payment that was refunded in parts',
      ['pay', ['refund', { amount: 1_000 }], 'refund'],
      [
        'final',
        [[103, 'Stripe, fee']],
        [
          [-1_000, 'refunded'],
          [-1_500, 'refunded'],
        ],
      ],
    ],
    [
      'a won dispute',
      ['pay', 'dispute', 'win'],
      [
        'final',
        [
          [103, 'Stripe, fee'],
          [1_500, 'Stripe, fee'],
        ],
        [
          [-2_500, 'disputed'],
          [2_500, 'dispute won'],
        ],
      ],
    ],
    [
      'a lost dispute after a refund',
      ['pay', ['refund', { amount: 500 }], 'dispute', 'lose'],
      [
        'final',
        [
          [103, 'Stripe, fee'],
          [1_500, 'Stripe, fee'],
        ],
        [
          [-500, 'refunded'],
          [-2_500, 'disputed'],
        ],
      ],
    ],
    [
      'an account in another currency, with converted fees',
      [['pay', { settled_in: 'eur' }], 'dispute'],
      [
        'final',
        [
          [104, 'Stripe, fee'],
          [1_500, 'Stripe, fee'],
        ],
        [[-2_500, 'disputed']],
      ],
    ],
  ])('is reported with its confirmations, fees and reversals, or not at all: %s', async (_, acts, found) => {
    const reference = await sessionWith(...acts);
    const [payment] = await backend.fetchPayments([reference]);
    const shown = payment && [payment.confirmations, changes(payment.fees), changes(payment.reversals)];
    expect(shown ?? []).toEqual(found);
    if (payment) expect([payment.id, payment.reference, payment.units]).toEqual([reference, reference, 2_500n]);
    expect(await backend.fetchPayments([reference])).toEqual(payment ? [payment] : []); // with the same ids
  });

  test('is restored if its refund fails', async () => {
    const reference = await sessionWith('pay');
    const [created] = await act(reference, 'refund', { amount: 1_000 });
    const refund = created?.data.object.id;
    await act(reference, 'fail_refund', { refund });
    const [payment] = await backend.fetchPayments([reference]);
    expect(payment?.reversals).toEqual([
      { id: refund, units: -1_000n, why: 'refunded' },
      { id: `${refund}:failed`, units: 1_000n, why: 'refund failed' },
    ]);
  });

  test.each([
    ['lower', 2_000],
    ['higher', 3_000],
    ['zero', 0],
  ])('is rejected if its total is %s, as after a discount or a tax', async (_, total) => {
    const reference = await sessionWith(['pay', { total }]);
    await expect(backend.fetchPayments([reference])).rejects.toThrow(`with ${total} usd, which was not requested`);
  });

  test('does not exist for a session of another Stripe account', async () => {
    expect(await backend.fetchPayments(['cs_test_no'])).toEqual([]);
  });
});

describe('a Stripe webhook', () => {
  const event = (type: string, object: object) => ({ id: 'evt_1', object: 'event', type, data: { object } });
  async function notified(what: object, { secret = SECRET, timestamp = Math.floor(Date.now() / 1000) } = {}) {
    const payload = JSON.stringify(what);
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp });
    return backend.parseWebhook({ headers: { 'stripe-signature': signature }, body: Buffer.from(payload) });
  }

  test.each(['completed', 'async_payment_succeeded', 'async_payment_failed', 'expired'])(
    'about a session (%s) names the session',
    async (what) => {
      expect(await notified(event(`checkout.session.${what}`, { id: 'cs_1' }))).toEqual(['cs_1']);
    },
  );

  test.each(['charge.refunded', 'refund.failed', 'charge.dispute.created', 'charge.dispute.funds_reinstated'])(
    'of type %s names the session of the payment',
    async (type) => {
      const reference = await sessionWith('pay', 'dispute');
      const api = new Stripe(KEY, { host: '127.0.0.1', port: new URL(sandbox.url).port, protocol: 'http' });
      const { payment_intent } = await api.checkout.sessions.retrieve(reference);
      expect(await notified(event(type, { payment_intent }))).toEqual([reference]);
      expect(await notified(event(type, { payment_intent: 'pi_of_somebody' }))).toEqual([]);
    },
  );

  test.each([
    ['of another type', event('customer.created', { id: 'cus_1' })],
    ['with an empty object', event('charge.refunded', {})],
    ['with an invalid session id', event('checkout.session.completed', { id: { $ne: 1 } })],
    ['without data', { type: 'checkout.session.completed' }],
  ])('%s names no session', async (_, what) => {
    expect(await notified(what)).toEqual([]);
  });

  test.each([
    ['signed with another secret', { secret: 'whsec_other' }],
    ['signed more than five minutes ago', { timestamp: Math.floor(Date.now() / 1000) - 301 }],
  ])('%s is rejected', async (_, how) => {
    expect(await notified(event('checkout.session.completed', { id: 'cs_1' }), how)).toBeUndefined();
  });

  test('is rejected with a changed body, without a signature, and without a configured secret', async () => {
    const payload = JSON.stringify(event('checkout.session.completed', { id: 'cs_1' }));
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret: SECRET });
    const body = Buffer.from(payload);
    const hook = { headers: { 'stripe-signature': signature }, body };
    expect(await backend.parseWebhook(hook)).toEqual(['cs_1']);
    expect(await backend.parseWebhook({ headers: {}, body })).toBeUndefined();
    expect(await backend.parseWebhook({ ...hook, body: Buffer.from(payload.replace('cs_1', 'cs_2')) })).toBeUndefined();
    const account = new StripeBackend({ stripeKey: KEY, stripeUrl: sandbox.url, stripeWebhookSecret: undefined });
    expect(await account.parseWebhook(hook)).toBeUndefined();
  });
});

describe('a subscription', () => {
  test('yields the sessions of all events, each once, including events about payments', async () => {
    const refunded = await sessionWith('pay', 'refund');
    const paid = await sessionWith('pay');
    const stop = new AbortController();
    const hints = backend.subscribe(stop.signal);
    const found = [(await hints.next()).value, (await hints.next()).value];
    expect(found.toSorted()).toEqual([refunded, paid].toSorted());
    const next = hints.next();
    stop.abort();
    expect((await next).done).toBe(true);
  });
});

/** A fake Stripe that sends this response to every request. */
const answering = async (status: number, body: string) => connect(await start(respondWithJson(body, status)));

describe('an implausible response of Stripe', () => {
  const charge = { id: 'ch_1', amount_captured: 2_500, currency: 'usd', paid: true, created: 1, disputed: false };
  const intent = { id: 'pi_1', amount_received: 2_500, latest_charge: charge };
  const truth = {
    id: 'cs_1',
    mode: 'payment',
    status: 'complete',
    payment_status: 'paid',
    currency: 'usd',
    amount_total: 2_500,
    amount_subtotal: 2_500,
    client_reference_id: 'mine',
    metadata: { topup: 'mine', cents: '2500' },
    url: 'https://checkout.example/x',
    payment_intent: intent,
  };
  const told = (more: object) => answering(200, JSON.stringify({ ...truth, ...more }));
  const asked = asking({ topupId: 'mine' });

  test('would be accepted without its contradiction', async () => {
    expect((await (await told({})).createPayment(asked)).reference).toBe('cs_1');
    expect(await (await told({})).fetchPayments(['cs_1'])).toMatchObject([
      { id: 'cs_1', units: 2_500n, confirmations: 'final' },
    ]);
  });

  test.each([
    ['for another top-up', { client_reference_id: 'other' }],
    ['for another amount', { amount_total: 2_400, amount_subtotal: 2_400, metadata: { topup: 'mine', cents: '2400' } }],
    ['with a discount', { amount_total: 2_400 }],
    ['in another currency', { currency: 'eur' }],
    ['with a currency conversion', { currency_conversion: { source_currency: 'eur' } }],
    ['with another mode', { mode: 'setup' }],
    ['without a page', { url: null }],
    ['with a script instead of a page', { url: 'javascript:alert(1)' }],
  ])('creates no session %s', async (_, lie) => {
    await expect((await told(lie)).createPayment(asked)).rejects.toThrow("Stripe's response");
  });

  test.each([
    ['of another session', { id: 'cs_2' }],
    ['that was not required', { payment_status: 'no_payment_required', payment_intent: null }],
    ['of a smaller amount', { payment_intent: { ...intent, amount_received: 2_499 } }],
    ['with a smaller capture', { payment_intent: { ...intent, latest_charge: { ...charge, amount_captured: 1 } } }],
    ['in another currency', { payment_intent: { ...intent, latest_charge: { ...charge, currency: 'eur' } } }],
    ['that failed', { payment_intent: { ...intent, latest_charge: { ...charge, paid: false } } }],
    ['without a charge', { payment_intent: { ...intent, latest_charge: null } }],
  ])('does not credit a payment %s', async (_, lie) => {
    await expect((await told(lie)).fetchPayments(['cs_1'])).rejects.toThrow("Stripe's response");
  });

  test('does not credit a payment whose disputes are not a list', async () => {
    const account = await told({ payment_intent: { ...intent, latest_charge: { ...charge, disputed: true } } });
    await expect(account.fetchPayments(['cs_1'])).rejects.toMatchObject({
      message: 'Stripe sent an unreadable response',
    });
  });
});

describe('a failed call to Stripe', () => {
  const REFUSED = JSON.stringify({
    error: { type: 'invalid_request_error', message: `Invalid API Key provided: ${KEY}` },
  });

  test.each([
    ['an unknown key', 401, REFUSED, 'Stripe responded with status 401 (StripeAuthenticationError)'],
    ['too many requests', 429, REFUSED, 'Stripe responded with status 429 (StripeRateLimitError)'],
    ['invalid JSON', 200, '<html>', 'Stripe cannot be reached, or its response cannot be read'],
    ['null', 200, 'null', 'Stripe cannot be reached, or its response cannot be read'],
    ['an invalid error object', 200, `{"error":5,"key":"${KEY}"}`, 'Stripe sent an unreadable response'],
    ['a redirect', 302, '', 'Stripe cannot be reached, or its response cannot be read'],
  ])('because of %s has an error with the reason and without secrets', async (_, status, body, message) => {
    const account = await answering(status, body);
    const error = await account.fetchPayments(['cs_1']).catch((failure: unknown) => failure);
    expect(error).toMatchObject({ name: 'UpstreamError', message, isCredentialRejected: status === 401 });
    const { inspect } = await import('node:util');
    expect(inspect(error, { depth: 20 })).not.toContain(KEY);
  });

  test('with an endless response fails, and stops reading', async () => {
    let sent = 0;
    const endless = await start((response) => {
      const more = () => {
        while (sent < 100 && response.write(' '.repeat(1024 * 1024))) sent++;
      };
      response.on('drain', more);
      more();
    });
    await expect(connect(endless).fetchPayments(['cs_1'])).rejects.toThrow('Stripe cannot be reached');
    expect(sent).toBeLessThan(40);
  });

  test('with a response that arrives byte by byte fails after the timeout', async () => {
    const dripping = await start((response) => {
      const timer = setInterval(() => response.write(' '), 5);
      response.on('close', () => clearInterval(timer));
    });
    const http = new StripeHttpClient(dripping);
    opened.defer(() => http.close());
    const asked = http.makeRequest('127.0.0.1', '443', '/v1/events', 'GET', {}, '', 'https', 30);
    await expect(asked).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  test('to an unreachable server fails', async () => {
    await expect(connect('http://127.0.0.1:1').fetchPayments(['cs_1'])).rejects.toThrow('Stripe cannot be reached');
  });
});
