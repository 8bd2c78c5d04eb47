/** Card payments with Stripe's library and a simulated Stripe: what is credited, retained and reversed, to the cent. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { verify } from '#audit';
import { type DomainEvent, toPostings } from '#domain';
import { money, type PicoUsd, ZERO_USD } from '#kernel';
import { sampleCases, type TestAccount, TestWorld } from '#testing';

const SECRET = 'sandbox';
const HOOKS = '/topup/webhooks/stripe';

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  await tell('/stripe/webhooks', { url: world.api + HOOKS, secret: SECRET });
});
afterAll(() => world.close());

/** Controls the simulated Stripe. */
async function tell(path: string, body: object): Promise<{ readonly events: readonly StripeEvent[] }> {
  const response = await fetch(world.sandbox + path, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as { events: StripeEvent[] };
}

interface StripeEvent {
  readonly type: string;
  readonly data: { readonly object: { readonly id: string } };
}

interface Session {
  readonly account: TestAccount;
  readonly invoice_id: string;
  readonly payment_page: string;
  readonly checkout_url: string;
}

const request = (body: object, account?: TestAccount) => world.post('/topup/card/session', body, account);

async function session(of?: TestAccount, amount = 25): Promise<Session> {
  const account = of ?? (await world.createAccount());
  const { status, body, text } = await request({ amount, currency: 'USD' }, account);
  if (status !== 201) throw new Error(text);
  return { ...body, account };
}

const act = ({ payment_page }: Session, what: string, more: object = {}) =>
  tell(`/stripe/sessions/${payment_page.split('/').at(-1)}`, { do: what, ...more });
const statusOf = async ({ invoice_id }: Session) => (await world.get(`/topup/status/${invoice_id}`)).body.status;

/**
 * Returns the balance of the account and, from the events of the account and of this session, what Stripe owes and what
 * Stripe retained.
 */
async function books({ account, invoice_id }: Session): Promise<string> {
  const sums = new Map<string, PicoUsd>();
  const accountStream = `account-${world.getAccountId(account)}`;
  const facts = await Promise.all([accountStream, `topup-${invoice_id}`].map((stream) => world.listStream(stream)));
  for (const fact of facts.flat()) {
    for (const { account: name, amount } of toPostings(accountStream, fact as DomainEvent))
      sums.set(name, money.add(sums.get(name) ?? ZERO_USD, amount));
  }
  const sum = (name: string) => money.formatUsd(sums.get(name) ?? ZERO_USD);
  return `balance ${await world.fetchBalance(account)}, clearing ${sum('clearing:card')}, fees ${sum('fees:card')}`;
}

type Step = readonly [what: string, more?: object];

interface Played {
  readonly session: Session;
  readonly books: string;
  readonly status: string;
}

/**
 * Runs a scenario, and waits until the ledger and the status are as expected. The scenarios run concurrently, each with
 * its own account.
 */
async function play(steps: readonly Step[], expected: string, status: string): Promise<Played> {
  const made = await session();
  for (const [what, more] of steps) await act(made, what, more);
  const look = async () => ({ session: made, books: await books(made), status: await statusOf(made) });
  let seen = await look();
  await world.waitUntil(async () => {
    seen = await look();
    return seen.books === expected && seen.status === status;
  });
  return seen;
}

const PAID = 'balance 25, clearing 23.97, fees 1.03';
const NOTHING = 'balance 0, clearing 0, fees 0';
const now = (report: string): readonly Step[] => [['pay', { report }]];
const later = (report: string): readonly Step[] => [
  ['pay_later', { report }],
  ['succeed', { report }],
];

type Story = readonly [story: string, steps: readonly Step[], books: string, status: string];

/** Now or later × how it is reported, in an order in which every second one has each report. */
const PAID_STORIES: readonly Story[] = [
  ['is paid, and a webhook reports it once', now('once'), PAID, 'Settled'],
  ['is paid later, and a webhook reports it once', later('once'), PAID, 'Settled'],
  ['is paid later, and a webhook reports it twice', later('twice'), PAID, 'Settled'],
  ['is paid, and a webhook reports it twice', now('twice'), PAID, 'Settled'],
  ['is paid, and concurrent webhooks report it', now('at once'), PAID, 'Settled'],
  ['is paid later, and concurrent webhooks report it', later('at once'), PAID, 'Settled'],
  [
    'is paid later, and its webhooks arrive out of order',
    [['pay_later', { report: 'reordered' }], ['succeed']],
    PAID,
    'Settled',
  ],
  [
    'is paid, and its webhooks arrive out of order',
    [...now('reordered'), ['refund', { amount: 1 }]],
    'balance 24.99, clearing 23.96, fees 1.03',
    'Settled',
  ],
  ['is paid, and only a forged webhook reports it', now('forged'), PAID, 'Settled'],
  ['is paid later, and only a forged webhook reports it', later('forged'), PAID, 'Settled'],
  ['is paid later, and no webhook reports it', later('never'), PAID, 'Settled'],
  ['is paid, and no webhook reports it', now('never'), PAID, 'Settled'],
];

const STORIES: readonly Story[] = [
  ...sampleCases(PAID_STORIES, 6),
  ['is complete and unpaid', [['pay_later']], NOTHING, 'Processing'],
  [
    'is complete and unpaid, and concurrent webhooks report it',
    [['pay_later', { report: 'at once' }]],
    NOTHING,
    'Processing',
  ],
  [
    'is complete, and its payment fails',
    [
      ['pay_later', { report: 'twice' }],
      ['fail', { report: 'twice' }],
    ],
    NOTHING,
    'New',
  ],
  ['expires', [['expire']], NOTHING, 'New'],
  ['is refunded in part', [['pay'], ['refund', { amount: 1_000 }]], 'balance 15, clearing 13.97, fees 1.03', 'Settled'],
  [
    'is refunded in full, in two parts',
    [['pay'], ['refund', { amount: 1_000 }], ['refund', { report: 'twice' }]],
    'balance 0, clearing -1.03, fees 1.03',
    'Invalid',
  ],
  [
    'is refunded, and no webhook reports it',
    [
      ['pay', { report: 'never' }],
      ['refund', { report: 'never' }],
    ],
    'balance 0, clearing -1.03, fees 1.03',
    'Invalid',
  ],
  ['is disputed and won', [['pay'], ['dispute'], ['win']], 'balance 25, clearing 8.97, fees 16.03', 'Settled'],
  [
    'is disputed and lost',
    [['pay'], ['dispute', { report: 'at once' }], ['lose']],
    'balance 0, clearing -16.03, fees 16.03',
    'Invalid',
  ],
  [
    'is refunded in part, and disputed in full',
    [['pay'], ['refund', { amount: 1_000 }], ['dispute']],
    'balance -10, clearing -26.03, fees 16.03',
    'Invalid',
  ],
  ['is paid with less than the requested amount', [['pay', { total: 2_000 }]], NOTHING, 'New'],
  ['is paid with more than the requested amount', [['pay', { total: 3_000 }]], NOTHING, 'New'],
];

describe('a session that', () => {
  let played: readonly Promise<Played>[];
  beforeAll(() => {
    played = STORIES.map(([, steps, expected, status]) => play(steps, expected, status));
  });

  test.each(STORIES.map((story, i) => [...story, i] as const))('%s', async (_, _steps, expected, status, i) => {
    const end = await played[i];
    expect([end?.books, end?.status]).toEqual([expected, status]);
  });

  test('is reported again has the same postings, and the ledger has no drift', async () => {
    const ends = await Promise.all(played);
    await Promise.all(ends.map(({ session: made }) => replay(made)));
    expect((await play([['pay']], PAID, 'Settled')).books).toBe(PAID); // by then the webhooks are processed
    for (const [i, { session: made }] of ends.entries()) expect([i, await books(made)]).toEqual([i, STORIES[i]?.[2]]);
    const lines: string[] = [];
    await verify(world.foundation, (line) => lines.push(line));
    expect(lines.at(-1)).toBe('drift 0');
  });

  /** Sends a signed webhook with another amount. The gateway does not trust the amount, and polls the session. */
  async function replay({ payment_page }: Session): Promise<void> {
    const { Stripe } = await import('stripe');
    const object = { id: payment_page.split('/').at(-1), payment_status: 'paid', amount_total: 1_000_000 };
    const payload = JSON.stringify({ object: 'event', type: 'checkout.session.completed', data: { object } });
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret: SECRET });
    const headers = { 'stripe-signature': signature };
    expect((await world.send('POST', HOOKS, { headers, body: payload })).status).toBe(200);
  }
});

describe('an account below zero', () => {
  test('gets 402 for a chat until it has been topped up', async () => {
    const first = await session();
    const { account } = first;
    for (const step of ['pay', 'dispute']) await act(first, step);
    await act(first, 'refund', { amount: 500 });
    await world.waitUntil(async () => (await world.fetchBalance(account)) === '-5');
    expect((await world.sendChat(account)).status).toBe(402);
    const second = await session(account, 10);
    await act(second, 'pay');
    await world.waitUntil(async () => (await world.fetchBalance(account)) === '5');
    expect((await world.sendChat(account)).status).toBe(200);
  });
});

describe('a card payment, step by step', () => {
  const follow = async (made: Session, what: string, expected: string, more: object = {}) => {
    const { events } = await act(made, what, more);
    await world.waitUntil(async () => (await books(made)) === expected);
    return events;
  };

  test('restores the credit after a refund has failed', async () => {
    const made = await session();
    await follow(made, 'pay', PAID);
    const [refund] = await follow(made, 'refund', 'balance 15, clearing 13.97, fees 1.03', { amount: 1_000 });
    await follow(made, 'fail_refund', PAID, { refund: refund?.data.object.id });
  });

  test('takes back the credit when a dispute starts, and restores it when the dispute is won', async () => {
    const made = await session();
    await follow(made, 'pay', PAID);
    await follow(made, 'dispute', 'balance 0, clearing -16.03, fees 16.03');
    await follow(made, 'win', 'balance 25, clearing 8.97, fees 16.03');
  });

  test('records no fee until the fee is known', async () => {
    const made = await session();
    await follow(made, 'pay', 'balance 25, clearing 25, fees 0', { fee_later: true });
    await follow(made, 'book', PAID);
  });
});

describe('a request for a session', () => {
  test('returns a page of the card processor, and a page of the gateway to return to', async () => {
    const account = await world.createAccount();
    const { status, body } = await request({ amount: 12.5 }, account);
    expect(status).toBe(201);
    expect(body).toEqual({
      invoice_id: expect.stringMatching(/^[A-Za-z0-9]{22}$/),
      amount: 12.5,
      currency: 'USD',
      created_at: expect.any(Number),
      expires_at: body.created_at + 3_600,
      checkout_url: `${world.api}/topup/checkout/${body.invoice_id}`,
      payment_page: expect.stringContaining('/stripe/pay/cs_test_'),
    });
    const page = await world.get(body.checkout_url.slice(world.api.length));
    expect(page.text).toContain(`href="${body.payment_page}"`);
    const paid = await fetch(body.payment_page, { method: 'POST', redirect: 'manual' });
    expect(paid.headers.get('location')).toBe(body.checkout_url);
    const facts = (await world.listEvents()).map(({ data, metadata }) => ({ data, metadata }));
    expect(JSON.stringify(facts)).not.toContain('sk_test_sandbox');
  });

  test.each([
    [{ amount: 4.99 }, 400, 'amount'],
    [{ amount: 1_000.01 }, 400, 'amount'],
    [{ amount: 5.001 }, 400, 'amount'],
    [{ amount: '25' }, 400, 'amount'],
    [{ amount: 25, currency: 'EUR' }, 400, 'currency'],
  ])('of %p is rejected with the name of the field', async (body, status, param) => {
    const answer = await request(body, await world.createAccount());
    expect([answer.status, answer.body.error.param]).toEqual([status, param]);
  });

  test('requires a credential, and its method is not among the public payment methods', async () => {
    expect((await request({ amount: 25 })).status).toBe(401);
    const { creditId } = await world.createAccount();
    expect((await request({ amount: 25, credit_id: creditId })).status).toBe(201);
    const { body } = await world.get('/topup/payment-methods');
    expect(body.data.map(({ method }: { method: string }) => method)).not.toContain('card');
  });

  test('has limits from the settings, and is rejected if cards are not supported', async () => {
    const account = await world.createAccount();
    const other = await world.startGateway({ cardMinUsd: 1, cardMaxUsd: 2, stripeKey: undefined });
    const none = await world.post('/topup/card/session', { amount: 2 }, account, other.api);
    const page = await world.send('GET', '/topup/card', { api: other.api });
    await other.close();
    expect([none.status, page.status]).toEqual([404, 404]);
    const few = await world.startGateway({ cardMinUsd: 1, cardMaxUsd: 2 });
    const statuses = await Promise.all(
      [1, 2, 2.01].map(
        async (amount) => (await world.post('/topup/card/session', { amount }, account, few.api)).status,
      ),
    );
    await few.close();
    expect(statuses).toEqual([201, 201, 400]);
  });
});

describe('the page on which a card payment starts', () => {
  test('has a field for an amount within the limits, and loads nothing', async () => {
    const { status, headers, text } = await world.get('/topup/card');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-/);
    expect(text).toContain('min="5" max="1000"');
    expect(text).not.toMatch(/<link|<img|\sstyle=|\son\w+=|\ssrc=|action=/); // the key is in no URL
  });
});

test('rejects a webhook that is not signed by Stripe', async () => {
  const body = JSON.stringify({ type: 'checkout.session.completed', data: { object: { id: 'cs_1' } } });
  expect((await world.send('POST', HOOKS, { body, headers: { 'stripe-signature': 't=1,v1=00' } })).status).toBe(401);
  expect((await world.send('POST', HOOKS, { body })).status).toBe(401);
});
