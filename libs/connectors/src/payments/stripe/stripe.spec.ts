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

/** @returns the address of a Stripe that answers so */
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

/** A session to which all of this has happened. */
async function sessionWith(...acts: readonly Act[]): Promise<string> {
  const { reference } = await backend.createPayment(asking());
  for (const each of acts) await (typeof each === 'string' ? act(reference, each) : act(reference, ...each));
  return reference;
}

const changes = (all: readonly { readonly units: bigint; readonly why: string }[] = []) =>
  all.map(({ units, why }) => [Number(units), why]);

describe('a request', () => {
  test('is a session of exactly that amount, under our id', async () => {
    const { reference, destination } = await backend.createPayment(asking({ topupId: 'mine' }));
    expect(destination).toEqual({ kind: 'page', value: `${sandbox.url}/stripe/pay/${reference}` });
    const api = new Stripe(KEY, { host: '127.0.0.1', port: new URL(sandbox.url).port, protocol: 'http' });
    expect(await api.checkout.sessions.retrieve(reference)).toMatchObject({
      ...{ amount_total: 2_500, currency: 'usd', client_reference_id: 'mine', allow_promotion_codes: false },
      ...{ metadata: { topup: 'mine', cents: '2500' }, adaptive_pricing: { enabled: false } },
      ...{ allowed_payment_method_types: ['card'], success_url: 'https://gateway.example/topup/checkout/x' },
    });
  });

  test('whose answer is lost is repeated as it was, and is the same session', async () => {
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

  test('is for no less than Stripe takes', async () => {
    await expect(backend.createPayment(asking({ expirySeconds: 60 }))).resolves.toMatchObject({
      destination: { kind: 'page' },
    });
  });
});

describe('what has come', () => {
  test.each<[what: string, acts: readonly Act[], found: readonly unknown[]]>([
    ['nothing', [], []],
    ['nothing, of a session that expired', ['expire'], []],
    ['nothing, of what was paid otherwise than asked and given back', [['pay', { total: 2_000 }], 'refund'], []],
    ['what is under way', ['pay_later'], ['pending', [], []]],
    ['nothing, of what failed', ['pay_later', 'fail'], []],
    ['what was paid at once', ['pay'], ['final', [[103, 'Stripe, fee']], []]],
    ['what was paid later', ['pay_later', 'succeed'], ['final', [[103, 'Stripe, fee']], []]],
    [
      'what was refunded in parts',
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
      'a dispute that was won',
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
      'a dispute that was lost, after a refund',
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
      'the fee of an account in another currency, at its rate',
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
  ])('is %s', async (_, acts, found) => {
    const reference = await sessionWith(...acts);
    const [payment] = await backend.fetchPayments([reference]);
    const shown = payment && [payment.confirmations, changes(payment.fees), changes(payment.reversals)];
    expect(shown ?? []).toEqual(found);
    if (payment) expect([payment.id, payment.reference, payment.units]).toEqual([reference, reference, 2_500n]);
    expect(await backend.fetchPayments([reference])).toEqual(payment ? [payment] : []); // each under the same id again
  });

  test('is given again where a refund fails', async () => {
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
    ['less', 2_000],
    ['more', 3_000],
    ['nothing', 0],
  ])('is refused where %s was paid than was asked for, as after a discount or a tax', async (_, total) => {
    const reference = await sessionWith(['pay', { total }]);
    await expect(backend.fetchPayments([reference])).rejects.toThrow(`is for ${total} usd, which nobody asked for`);
  });

  test('is not known of a session of another account', async () => {
    expect(await backend.fetchPayments(['cs_test_no'])).toEqual([]);
  });
});

describe('a web hook', () => {
  const event = (type: string, object: object) => ({ id: 'evt_1', object: 'event', type, data: { object } });
  async function notified(what: object, { secret = SECRET, timestamp = Math.floor(Date.now() / 1000) } = {}) {
    const payload = JSON.stringify(what);
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp });
    return backend.parseWebhook({ headers: { 'stripe-signature': signature }, body: Buffer.from(payload) });
  }

  test.each(['completed', 'async_payment_succeeded', 'async_payment_failed', 'expired'])(
    'about a session that is %s names it',
    async (what) => {
      expect(await notified(event(`checkout.session.${what}`, { id: 'cs_1' }))).toEqual(['cs_1']);
    },
  );

  test.each(['charge.refunded', 'refund.failed', 'charge.dispute.created', 'charge.dispute.funds_reinstated'])(
    'of %s names the session behind the payment',
    async (type) => {
      const reference = await sessionWith('pay', 'dispute');
      const api = new Stripe(KEY, { host: '127.0.0.1', port: new URL(sandbox.url).port, protocol: 'http' });
      const { payment_intent } = await api.checkout.sessions.retrieve(reference);
      expect(await notified(event(type, { payment_intent }))).toEqual([reference]);
      expect(await notified(event(type, { payment_intent: 'pi_of_somebody' }))).toEqual([]);
    },
  );

  test.each([
    ['of another kind', event('customer.created', { id: 'cus_1' })],
    ['about nothing', event('charge.refunded', {})],
    ['about something odd', event('checkout.session.completed', { id: { $ne: 1 } })],
    ['without data', { type: 'checkout.session.completed' }],
  ])('%s names none', async (_, what) => {
    expect(await notified(what)).toEqual([]);
  });

  test.each([
    ['signed with another secret', { secret: 'whsec_other' }],
    ['signed more than five minutes ago', { timestamp: Math.floor(Date.now() / 1000) - 301 }],
  ])('%s is not believed', async (_, how) => {
    expect(await notified(event('checkout.session.completed', { id: 'cs_1' }), how)).toBeUndefined();
  });

  test('with a flipped bit, without a signature or without our secret is not believed', async () => {
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

describe('hints', () => {
  test('come from the list of events, each session once, also those of payments', async () => {
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

/** A Stripe that answers everything with this. */
const answering = async (status: number, body: string) => connect(await start(respondWithJson(body, status)));

describe('a Stripe that is mistaken or lies', () => {
  const charge = { id: 'ch_1', amount_captured: 2_500, currency: 'usd', paid: true, created: 1, disputed: false };
  const intent = { id: 'pi_1', amount_received: 2_500, latest_charge: charge };
  const truth = {
    ...{ id: 'cs_1', mode: 'payment', status: 'complete', payment_status: 'paid', currency: 'usd' },
    ...{ amount_total: 2_500, amount_subtotal: 2_500, client_reference_id: 'mine' },
    ...{ metadata: { topup: 'mine', cents: '2500' }, url: 'https://checkout.example/x', payment_intent: intent },
  };
  const told = (more: object) => answering(200, JSON.stringify({ ...truth, ...more }));
  const asked = asking({ topupId: 'mine' });

  test('is believed where all of it fits together', async () => {
    expect((await (await told({})).createPayment(asked)).reference).toBe('cs_1');
    expect(await (await told({})).fetchPayments(['cs_1'])).toMatchObject([
      { id: 'cs_1', units: 2_500n, confirmations: 'final' },
    ]);
  });

  test.each([
    ['for somebody else', { client_reference_id: 'other' }],
    ['for another amount', { amount_total: 2_400, amount_subtotal: 2_400, metadata: { topup: 'mine', cents: '2400' } }],
    ['with a discount', { amount_total: 2_400 }],
    ['in another currency', { currency: 'eur' }],
    ['that is converted', { currency_conversion: { source_currency: 'eur' } }],
    ['that saves a card', { mode: 'setup' }],
    ['without a page', { url: null }],
    ['with a page that is a script', { url: 'javascript:alert(1)' }],
  ])('makes no session %s', async (_, lie) => {
    await expect((await told(lie)).createPayment(asked)).rejects.toThrow('What Stripe answered');
  });

  test.each([
    ['of another session', { id: 'cs_2' }],
    ['of nothing', { payment_status: 'no_payment_required', payment_intent: null }],
    ['of less', { payment_intent: { ...intent, amount_received: 2_499 } }],
    ['of less than was captured', { payment_intent: { ...intent, latest_charge: { ...charge, amount_captured: 1 } } }],
    ['in another currency', { payment_intent: { ...intent, latest_charge: { ...charge, currency: 'eur' } } }],
    ['that failed', { payment_intent: { ...intent, latest_charge: { ...charge, paid: false } } }],
    ['without a charge', { payment_intent: { ...intent, latest_charge: null } }],
  ])('has no payment %s credited', async (_, lie) => {
    await expect((await told(lie)).fetchPayments(['cs_1'])).rejects.toThrow('What Stripe answered');
  });

  test('has no payment credited whose disputes are no list', async () => {
    const account = await told({ payment_intent: { ...intent, latest_charge: { ...charge, disputed: true } } });
    await expect(account.fetchPayments(['cs_1'])).rejects.toMatchObject({
      message: 'Stripe sent an answer that cannot be read',
    });
  });
});

describe('what goes wrong', () => {
  const REFUSED = JSON.stringify({
    error: { type: 'invalid_request_error', message: `Invalid API Key provided: ${KEY}` },
  });

  test.each([
    ['a key that Stripe does not know', 401, REFUSED, 'Stripe answered with status 401 (StripeAuthenticationError)'],
    ['too many requests', 429, REFUSED, 'Stripe answered with status 429 (StripeRateLimitError)'],
    ['no JSON', 200, '<html>', 'Stripe cannot be reached'],
    ['nothing', 200, 'null', 'Stripe cannot be reached'],
    ['an error that is none', 200, `{"error":5,"key":"${KEY}"}`, 'Stripe sent an answer that cannot be read'],
    ['another place', 302, '', 'Stripe cannot be reached'],
  ])('such as %s is a failure that names it, and no secret', async (_, status, body, message) => {
    const account = await answering(status, body);
    const error = await account.fetchPayments(['cs_1']).catch((failure: unknown) => failure);
    expect(error).toMatchObject({ name: 'UpstreamError', message });
    const { inspect } = await import('node:util');
    expect(inspect(error, { depth: 20 })).not.toContain(KEY);
  });

  test('such as an answer without an end is a failure, and is not read to it', async () => {
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

  test('such as an answer that drips is waited for no longer than any other', async () => {
    const dripping = await start((response) => {
      const timer = setInterval(() => response.write(' '), 5);
      response.on('close', () => clearInterval(timer));
    });
    const http = new StripeHttpClient(dripping);
    opened.defer(() => http.close());
    const asked = http.makeRequest('127.0.0.1', '443', '/v1/events', 'GET', {}, '', 'https', 30);
    await expect(asked).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  test('such as nobody there is a failure', async () => {
    await expect(connect('http://127.0.0.1:1').fetchPayments(['cs_1'])).rejects.toThrow('Stripe cannot be reached');
  });
});
