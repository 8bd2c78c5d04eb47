import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { BackendPayment, CreatedPayment, PaymentBackend } from '#application';
import type { CoinTerms, Destination } from '#domain';
import type { HowToPay } from '../world/sandbox-wallet.ts';

const EXPIRY_SECONDS = 900;
const CONFIRMATIONS = 2;
const FOUND_WITHIN_MS = 5_000;
const LOOK_AGAIN_MS = 20;

/**
 * What can happen with a payment of a back end. A Lightning node takes neither less than was asked for nor a second
 * payment, and what is paid over it is final at once.
 */
export type Payable = 'more' | 'less' | 'late' | 'twice' | 'waiting' | 'replaced' | 'undone' | 'hinted';

/** The customer's side of a back end. */
export interface Wallet {
  /** @returns what the network knows the payment by */
  pay(to: Destination, units: bigint, coin: CoinTerms, how?: HowToPay): Promise<string>;
  /** Makes final what waits. */
  mine(coin: CoinTerms): Promise<void>;
  undo?(coin: CoinTerms, payment: string): Promise<void>;
}

/** What a back end is to be tried with. */
export interface Taken {
  readonly coin: CoinTerms;
  readonly kind: Destination['kind'];
  /** An amount to ask for, of the coin's smallest unit; it is paid with up to twice as much. */
  readonly units: bigint;
  readonly capabilities: readonly Payable[];
}

export interface OpenBackend {
  readonly backend: PaymentBackend;
  /** Missing on a real server that nobody pays: then only what needs no payment is tried. */
  readonly wallet?: Wallet;
  close(): Promise<void>;
}

/**
 * What every adapter of the `PaymentBackend` port keeps to. Invoices of the suite live beside each other on one back end,
 * as they do in service, so it may be a server with a history.
 * @param wallet whether `open` brings one
 */
export function paymentBackendContract(
  name: string,
  taken: readonly Taken[],
  open: () => Promise<OpenBackend>,
  wallet: 'with a wallet' | 'without' = 'with a wallet',
): void {
  describe(`${name} as a payment back end`, () => {
    let opened: OpenBackend;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());

    describe.each(taken.map((each) => ({ ...each, code: each.coin.code })))('in $code to a $kind', (each) => {
      requests(each, () => opened.backend);
      if (wallet === 'with a wallet') payments(each, () => opened);
    });
  });
}

let requested = 0;

/** Asks for a payment as a top-up does. */
function ask(backend: PaymentBackend, { coin, kind, units }: Taken, more = 0n): Promise<CreatedPayment> {
  const topupId = `contract${Date.now()}x${requested++}`;
  const returnUrl = `https://gateway.example/topup/checkout/${topupId}`;
  const terms = { topupId, coin, kind, memo: 'Päivää ☕', expirySeconds: EXPIRY_SECONDS, confirmations: CONFIRMATIONS };
  return backend.createPayment({ ...terms, returnUrl, units: units + more });
}

function requests(taken: Taken, backend: () => PaymentBackend): void {
  test('each request has a reference and a destination of its own', async () => {
    const made = [await ask(backend(), taken), await ask(backend(), taken)];
    expect(new Set(made.map(({ reference }) => reference)).size).toBe(2);
    expect(new Set(made.map(({ destination }) => destination.value)).size).toBe(2);
    expect(made.map(({ destination }) => destination.kind)).toEqual([taken.kind, taken.kind]);
  });

  test('nothing has come before it was paid, whoever is asked after', async () => {
    const made = await Promise.all(
      Array.from({ length: Math.min(backend().maxBatchSize, 5) }, () => ask(backend(), taken)),
    );
    expect(await backend().fetchPayments(made.map(({ reference }) => reference))).toEqual([]);
  });
}

/** The rules of a payment, in words that a test begins with. */
type Rule = (story: {
  readonly made: CreatedPayment;
  readonly pay: (units: bigint, how?: HowToPay) => Promise<string>;
  /** What is found once it is as it should be. */
  readonly found: (is: (payments: readonly BackendPayment[]) => boolean) => Promise<readonly BackendPayment[]>;
  readonly mine: () => Promise<void>;
  readonly opened: OpenBackend;
}) => Promise<void>;

function payments(taken: Taken, opened: () => OpenBackend): void {
  const { coin, units } = taken;
  const rule = (title: string, tell: Rule, needs?: Payable) => {
    if (needs !== undefined && !taken.capabilities.includes(needs)) return;
    test(title, async () => {
      const { backend, wallet } = opened();
      if (!wallet) throw new Error('this back end is said to have a wallet');
      const made = await ask(backend, taken);
      await tell({
        made,
        pay: (amount, how) => wallet.pay(made.destination, amount, coin, how),
        found: (is) => until(() => backend.fetchPayments([made.reference]), is),
        mine: () => wallet.mine(coin),
        opened: opened(),
      });
    });
  };

  rule(
    'what was asked for is found when it was paid, with the time, and as often as it is looked for',
    async (story) => {
      const before = Date.now() - 2_000; // whole seconds, and clocks that differ a little
      await story.pay(units);
      await story.mine();
      const [payment, ...more] = await story.found(isFinal);
      expect([payment?.reference, payment?.units, more]).toEqual([story.made.reference, units, []]);
      expect(Date.parse(payment?.receivedAt ?? '')).toBeGreaterThan(before);
      expect(new Date(payment?.receivedAt ?? '').toISOString()).toBe(payment?.receivedAt);
      expect(await story.opened.backend.fetchPayments([story.made.reference])).toEqual([payment]);
    },
  );

  rule('a payment is found for what it was made for, and for nothing else', async (story) => {
    const { backend } = story.opened;
    const other = await ask(backend, taken);
    await story.pay(units);
    await story.mine();
    const [{ id: first } = { id: '' }] = await story.found(isFinal);
    expect(await backend.fetchPayments([other.reference])).toEqual([]);
    await story.opened.wallet?.pay(other.destination, units, coin);
    await story.mine();
    const [second] = await until(() => backend.fetchPayments([other.reference]), isFinal);
    expect(second).toMatchObject({ reference: other.reference, units });
    expect(second?.id).not.toBe(first);
    if (backend.maxBatchSize < 2) return;
    const both = await backend.fetchPayments([other.reference, story.made.reference]);
    expect(both.map(({ reference }) => reference).toSorted()).toEqual(
      [other.reference, story.made.reference].toSorted(),
    );
  });

  rule(
    'more than was asked for is found as it was paid',
    async (story) => {
      await story.pay(units * 2n);
      await story.mine();
      expect(await story.found(isFinal)).toMatchObject([{ units: units * 2n }]);
    },
    'more',
  );

  rule(
    'less than was asked for is found as it was paid',
    async (story) => {
      await story.pay(units / 4n);
      await story.mine();
      expect(await story.found(isFinal)).toMatchObject([{ units: units / 4n }]);
    },
    'less',
  );

  rule(
    'what comes after the expiry is found with its time',
    async (story) => {
      const receivedAt = Math.floor(Date.now() / 1000) + EXPIRY_SECONDS + 3_600;
      await story.pay(units, { receivedAt });
      await story.mine();
      const iso = new Date(receivedAt * 1000).toISOString();
      expect(await story.found(isFinal)).toMatchObject([{ units, receivedAt: iso }]);
    },
    'late',
  );

  rule(
    'two payments are two, each under an id of its own that stays',
    async (story) => {
      await story.pay(units / 4n);
      const [first] = await story.found((all) => all.length === 1);
      await story.pay(units);
      await story.mine();
      const both = await story.found((all) => all.length === 2 && isFinal(all));
      expect(both.map((each) => each.units).toSorted()).toEqual([units, units / 4n].toSorted());
      expect(new Set(both.map(({ id }) => id)).size).toBe(2);
      expect(both.find((each) => each.units === units / 4n)?.id).toBe(first?.id);
    },
    'twice',
  );

  rule(
    'what waits is found, and is not enough to count',
    async (story) => {
      await story.pay(units, { lowFee: true });
      const [payment] = await story.found((all) => all.length === 1);
      await story.mine();
      expect(await story.opened.backend.fetchPayments([story.made.reference])).toEqual([payment]);
      expect([payment?.units, isEnough(payment)]).toEqual([units, false]);
    },
    'waiting',
  );

  rule(
    'what is replaced while it waits does not count, and what replaces it does',
    async (story) => {
      const first = await story.pay(units, { lowFee: true });
      const [waiting] = await story.found((all) => all.length === 1);
      await story.pay(units / 4n, { replaces: first });
      await story.mine();
      const all = await story.found((found) => found.some(isEnough));
      expect(all.filter(isEnough)).toMatchObject([{ units: units / 4n }]);
      expect(all.filter(isEnough).map(({ id }) => id)).not.toContain(waiting?.id);
    },
    'replaced',
  );

  rule(
    'what is undone after it counted is lost, under the same id',
    async (story) => {
      const payment = await story.pay(units / 4n);
      await story.mine();
      const [counted] = await story.found(isFinal);
      await story.opened.wallet?.undo?.(coin, payment);
      const look = () => story.opened.backend.fetchPayments([story.made.reference], [counted?.id ?? '']);
      const [lost] = await until(look, (all) => all.some(({ confirmations }) => confirmations === 'lost'));
      expect(lost).toEqual({ ...counted, confirmations: 'lost' });
    },
    'undone',
  );

  rule(
    'is hinted at',
    async ({ opened: { backend, wallet } }) => {
      const stop = new AbortController();
      const hints = backend.subscribe(stop.signal)[Symbol.asyncIterator]();
      const hinted = hints.next();
      const references: string[] = [];
      const hint = await payUntil(hinted, async () => {
        const made = await ask(backend, taken);
        references.push(made.reference);
        await wallet?.pay(made.destination, units, coin);
        await wallet?.mine(coin);
      });
      expect(references).toContain(hint.value);
      const ended = hints.next();
      stop.abort();
      await expect(
        ended.then(
          ({ done }) => done,
          () => true,
        ),
      ).resolves.toBe(true);
    },
    'hinted',
  );
}

/** Pays one request after the other until the back end hints at one: nobody knows when it has begun to. */
async function payUntil<T>(hinted: Promise<T>, pay: () => Promise<void>): Promise<T> {
  let known: { readonly hint: T } | undefined;
  const waiting = hinted.then((hint) => {
    known = { hint };
  });
  const deadline = performance.now() + FOUND_WITHIN_MS;
  while (!known && performance.now() < deadline) {
    await pay();
    await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))]);
  }
  if (!known) throw new Error('the back end does not hint at what was paid');
  return known.hint;
}

function isEnough(payment: BackendPayment | undefined): boolean {
  const confirmations = payment?.confirmations;
  return confirmations === 'final' || (typeof confirmations === 'number' && confirmations >= CONFIRMATIONS);
}

function isFinal(all: readonly BackendPayment[]): boolean {
  return all.length > 0 && all.every(isEnough);
}

async function until(
  look: () => Promise<readonly BackendPayment[]>,
  is: (payments: readonly BackendPayment[]) => boolean,
): Promise<readonly BackendPayment[]> {
  const deadline = performance.now() + FOUND_WITHIN_MS;
  for (;;) {
    const found = await look();
    if (is(found)) return found;
    if (performance.now() > deadline) throw new Error(`what was waited for did not come: ${found.length} payments`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}
