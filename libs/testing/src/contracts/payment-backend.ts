import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BackendPayment, CreatedPayment, PaymentBackend } from '#application';
import type { CoinTerms, Destination } from '#domain';
import { waitUntil } from '../wait-until.ts';
import type { PayOptions } from '../world/sandbox-wallet.ts';

const EXPIRY_SECONDS = 900;
const CONFIRMATIONS = 2;
/** How long a hint may take before another request is paid. */
const HINT_INTERVAL_MS = 20;

/**
 * What can happen to a payment of a backend. A Lightning node, for example, accepts neither less than the invoice nor a
 * second payment, and its payments are final at once.
 */
export type PaymentCapability =
  | 'overpaid'
  | 'underpaid'
  | 'after_expiry'
  | 'twice'
  | 'waiting'
  | 'replaced'
  | 'reversed'
  | 'hinted';

/** The customer's side of a backend. */
export interface Wallet {
  /** Pays. @returns the id of the payment on its network */
  pay(to: Destination, units: bigint, coin: CoinTerms, options?: PayOptions): Promise<string>;
  /** Makes waiting payments final, except those with a low fee. */
  mine(coin: CoinTerms): Promise<void>;
  undo?(coin: CoinTerms, payment: string): Promise<void>;
}

/** A coin and a kind of destination to test a backend with. */
export interface PaymentCase {
  readonly coin: CoinTerms;
  readonly kind: Destination['kind'];
  /** Amount to request, in the coin's smallest unit. Tests pay up to twice as much. */
  readonly units: bigint;
  readonly capabilities: readonly PaymentCapability[];
}

export interface OpenBackend {
  readonly backend: PaymentBackend;
  /** Undefined for a real server that tests do not pay. Then the contract needs 'without' as its last argument. */
  readonly wallet?: Wallet;
  close(): Promise<void>;
}

/**
 * Tests that every adapter of the `PaymentBackend` port must pass. All tests share one backend, which may be a server
 * with earlier invoices.
 * @param wallet whether `open` returns a wallet
 */
export function paymentBackendContract(
  name: string,
  cases: readonly PaymentCase[],
  open: () => Promise<OpenBackend>,
  wallet: 'with a wallet' | 'without' = 'with a wallet',
): void {
  describe(`${name} as a payment backend`, () => {
    let openedBackend: OpenBackend;
    beforeAll(async () => {
      openedBackend = await open();
    });
    afterAll(() => openedBackend.close());

    describe.each(cases.map((paymentCase) => ({ ...paymentCase, code: paymentCase.coin.code })))(
      'in $code to $kind destinations',
      (paymentCase) => {
        testRequests(paymentCase, () => openedBackend.backend);
        if (wallet === 'with a wallet') testPayments(paymentCase, () => openedBackend);
      },
    );
  });
}

let requested = 0;

/** Requests a payment as a top-up does. */
function requestPayment(
  backend: PaymentBackend,
  { coin, kind, units }: PaymentCase,
  extraUnits = 0n,
): Promise<CreatedPayment> {
  const topupId = `contract${Date.now()}x${requested++}`;
  const returnUrl = `https://gateway.example/topup/checkout/${topupId}`;
  const terms = { topupId, coin, kind, memo: 'Päivää ☕', expirySeconds: EXPIRY_SECONDS, confirmations: CONFIRMATIONS };
  return backend.createPayment({ ...terms, returnUrl, units: units + extraUnits });
}

function testRequests(paymentCase: PaymentCase, backend: () => PaymentBackend): void {
  test('two requests get different references, and different destinations of the requested kind', async () => {
    const createdPayments = [
      await requestPayment(backend(), paymentCase),
      await requestPayment(backend(), paymentCase),
    ];
    expect(new Set(createdPayments.map(({ reference }) => reference)).size).toBe(2);
    expect(new Set(createdPayments.map(({ destination }) => destination.value)).size).toBe(2);
    expect(createdPayments.map(({ destination }) => destination.kind)).toEqual([paymentCase.kind, paymentCase.kind]);
  });

  test('returns no payments for unpaid requests', async () => {
    const createdPayments = await Promise.all(
      Array.from({ length: Math.min(backend().maxBatchSize, 5) }, () => requestPayment(backend(), paymentCase)),
    );
    expect(await backend().fetchPayments(createdPayments.map(({ reference }) => reference))).toEqual([]);
  });
}

/** Checks one rule for a requested payment. */
type CheckRule = (scenario: {
  readonly createdPayment: CreatedPayment;
  readonly pay: (units: bigint, options?: PayOptions) => Promise<string>;
  /** Polls until the payments are as expected, and returns them. */
  readonly waitForPayments: (
    arePaymentsExpected: (payments: readonly BackendPayment[]) => boolean,
  ) => Promise<readonly BackendPayment[]>;
  readonly mine: () => Promise<void>;
  readonly openedBackend: OpenBackend;
}) => Promise<void>;

function testPayments(paymentCase: PaymentCase, getBackend: () => OpenBackend): void {
  const { coin, units } = paymentCase;
  const testRule = (title: string, check: CheckRule, needs?: PaymentCapability) => {
    if (needs !== undefined && !paymentCase.capabilities.includes(needs)) return;
    test(title, async () => {
      const { backend, wallet } = getBackend();
      if (!wallet) throw new Error('open() returned no wallet');
      const createdPayment = await requestPayment(backend, paymentCase);
      await check({
        createdPayment,
        pay: (amount, options) => wallet.pay(createdPayment.destination, amount, coin, options),
        waitForPayments: (is) => pollUntil(() => backend.fetchPayments([createdPayment.reference]), is),
        mine: () => wallet.mine(coin),
        openedBackend: getBackend(),
      });
    });
  };

  testRule('finds the requested payment with its time, also when it is polled again', async (scenario) => {
    const before = Date.now() - 2_000; // times are in seconds, and clocks differ a little
    await scenario.pay(units);
    await scenario.mine();
    const [payment, ...otherPayments] = await scenario.waitForPayments(isFinal);
    expect([payment?.reference, payment?.units, otherPayments]).toEqual([scenario.createdPayment.reference, units, []]);
    expect(Date.parse(payment?.receivedAt ?? '')).toBeGreaterThan(before);
    expect(new Date(payment?.receivedAt ?? '').toISOString()).toBe(payment?.receivedAt);
    expect(await scenario.openedBackend.backend.fetchPayments([scenario.createdPayment.reference])).toEqual([payment]);
  });

  testRule('finds a payment by its own reference only', async (scenario) => {
    const { backend } = scenario.openedBackend;
    const other = await requestPayment(backend, paymentCase);
    await scenario.pay(units);
    await scenario.mine();
    const [{ id: first } = { id: '' }] = await scenario.waitForPayments(isFinal);
    expect(await backend.fetchPayments([other.reference])).toEqual([]);
    await scenario.openedBackend.wallet?.pay(other.destination, units, coin);
    await scenario.mine();
    const [second] = await pollUntil(() => backend.fetchPayments([other.reference]), isFinal);
    expect(second).toMatchObject({ reference: other.reference, units });
    expect(second?.id).not.toBe(first);
    if (backend.maxBatchSize < 2) return;
    const both = await backend.fetchPayments([other.reference, scenario.createdPayment.reference]);
    expect(both.map(({ reference }) => reference).toSorted()).toEqual(
      [other.reference, scenario.createdPayment.reference].toSorted(),
    );
  });

  testRule(
    'finds an overpayment with the amount that was paid',
    async (scenario) => {
      await scenario.pay(units * 2n);
      await scenario.mine();
      expect(await scenario.waitForPayments(isFinal)).toMatchObject([{ units: units * 2n }]);
    },
    'overpaid',
  );

  testRule(
    'finds an underpayment with the amount that was paid',
    async (scenario) => {
      await scenario.pay(units / 4n);
      await scenario.mine();
      expect(await scenario.waitForPayments(isFinal)).toMatchObject([{ units: units / 4n }]);
    },
    'underpaid',
  );

  testRule(
    'finds a payment that arrives after the expiry, with its time',
    async (scenario) => {
      const receivedAt = Math.floor(Date.now() / 1000) + EXPIRY_SECONDS + 3_600;
      await scenario.pay(units, { receivedAt });
      await scenario.mine();
      const iso = new Date(receivedAt * 1000).toISOString();
      expect(await scenario.waitForPayments(isFinal)).toMatchObject([{ units, receivedAt: iso }]);
    },
    'after_expiry',
  );

  testRule(
    'finds two payments of one request with two ids, and the id of the first does not change',
    async (scenario) => {
      await scenario.pay(units / 4n);
      const [first] = await scenario.waitForPayments((all) => all.length === 1);
      await scenario.pay(units);
      await scenario.mine();
      const both = await scenario.waitForPayments((all) => all.length === 2 && isFinal(all));
      expect(both.map((payment) => payment.units).toSorted()).toEqual([units, units / 4n].toSorted());
      expect(new Set(both.map(({ id }) => id)).size).toBe(2);
      expect(both.find((payment) => payment.units === units / 4n)?.id).toBe(first?.id);
    },
    'twice',
  );

  testRule(
    'finds a waiting payment that does not count yet',
    async (scenario) => {
      await scenario.pay(units, { lowFee: true });
      const [payment] = await scenario.waitForPayments((all) => all.length === 1);
      await scenario.mine();
      expect(await scenario.openedBackend.backend.fetchPayments([scenario.createdPayment.reference])).toEqual([
        payment,
      ]);
      expect([payment?.units, isConfirmed(payment)]).toEqual([units, false]);
    },
    'waiting',
  );

  testRule(
    'does not count a replaced payment, and counts its replacement',
    async (scenario) => {
      const first = await scenario.pay(units, { lowFee: true });
      const [waiting] = await scenario.waitForPayments((all) => all.length === 1);
      await scenario.pay(units / 4n, { replaces: first });
      await scenario.mine();
      const all = await scenario.waitForPayments((payments) => payments.some(isConfirmed));
      expect(all.filter(isConfirmed)).toMatchObject([{ units: units / 4n }]);
      expect(all.filter(isConfirmed).map(({ id }) => id)).not.toContain(waiting?.id);
    },
    'replaced',
  );

  testRule(
    'reports a reversed payment as lost under the same id',
    async (scenario) => {
      const payment = await scenario.pay(units / 4n);
      await scenario.mine();
      const [confirmedPayment] = await scenario.waitForPayments(isFinal);
      await scenario.openedBackend.wallet?.undo?.(coin, payment);
      const poll = () =>
        scenario.openedBackend.backend.fetchPayments([scenario.createdPayment.reference], [confirmedPayment?.id ?? '']);
      const [lost] = await pollUntil(poll, (all) => all.some(({ confirmations }) => confirmations === 'lost'));
      expect(lost).toEqual({ ...confirmedPayment, confirmations: 'lost' });
    },
    'reversed',
  );

  testRule(
    'yields a hint for a payment',
    async ({ openedBackend: { backend, wallet } }) => {
      const stop = new AbortController();
      const hints = backend.subscribe(stop.signal)[Symbol.asyncIterator]();
      const hinted = hints.next();
      const references: string[] = [];
      const hint = await payUntil(hinted, async () => {
        const createdPayment = await requestPayment(backend, paymentCase);
        references.push(createdPayment.reference);
        await wallet?.pay(createdPayment.destination, units, coin);
        await wallet?.mine(coin);
      });
      expect(references).toContain(hint.value);
      const ended = hints.next();
      stop.abort();
      await expect(
        ended.then(
          ({ done }) => done,
          () => true, // it may also end with the reason of the abort
        ),
      ).resolves.toBe(true);
    },
    'hinted',
  );
}

/**
 * Pays one request after another until the backend yields a hint, because it is unknown when the subscription becomes
 * active.
 */
async function payUntil<T>(hinted: Promise<T>, pay: () => Promise<void>): Promise<T> {
  let isHinted = false;
  const waiting = hinted.then(() => {
    isHinted = true;
  });
  await waitUntil(async () => {
    await pay();
    await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, HINT_INTERVAL_MS))]);
    return isHinted;
  });
  return hinted;
}

function isConfirmed(payment: BackendPayment | undefined): boolean {
  const confirmations = payment?.confirmations;
  return confirmations === 'final' || (typeof confirmations === 'number' && confirmations >= CONFIRMATIONS);
}

function isFinal(all: readonly BackendPayment[]): boolean {
  return all.length > 0 && all.every(isConfirmed);
}

async function pollUntil(
  poll: () => Promise<readonly BackendPayment[]>,
  is: (payments: readonly BackendPayment[]) => boolean,
): Promise<readonly BackendPayment[]> {
  let payments: readonly BackendPayment[] = [];
  await waitUntil(async () => {
    payments = await poll();
    return is(payments);
  });
  return payments;
}
