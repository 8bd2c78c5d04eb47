import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AccountState,
  type DomainEvent,
  getStreamId,
  getWindowId,
  type ResetPeriod,
  UNRESTRICTED_ACCESS,
} from '#domain';
import { type EventBatch, money } from '#kernel';
import {
  createProjectionSink,
  findKeyOwner,
  findPayersByHoldOwner,
  findPayersWithOverdueHolds,
  findTopupIds,
  findUnclaimedChallenges,
  foldTopup,
  MAX_COUNTED_AFTER_PAGE,
  MAX_HISTORY_SCAN,
  PageOutOfRangeError,
  projections,
  QueryHistory,
  readBalance,
  readChallenges,
  readKeys,
} from '#projections';
import { sampleSize } from '../../testing/src/sample-cases.ts';
import { createHistoryArbitrary, type History } from '../../testing/src/scenarios/histories.ts';
import type { HistoryEvent } from '../../testing/src/scenarios/history-builder.ts';
import { ReadModelTables, splitIntoBatches } from '../../testing/src/world/read-model-tables.ts';

const RUNS = sampleSize(5, 2);
const TIME_LIMIT_MS = 3_000;
const FRIDAY = '2026-11-20T12:00:00.000Z';
const SATURDAY = '2026-11-21T12:00:00.000Z';
const LATER = '2027-01-01T00:00:00.000Z';

let books: ReadModelTables;
beforeAll(async () => {
  books = await ReadModelTables.open();
});
afterAll(() => books.close());

/** Clears the read models and fills them from these batches. */
async function project(batches: readonly EventBatch[], chosen = projections): Promise<void> {
  await books.clear();
  const written = chosen.map(async (projection) => {
    const sink = createProjectionSink(projection, books.pool, 1);
    await sink.loadCheckpoint();
    for (const batch of batches) await sink.apply(batch);
  });
  await Promise.all(written);
}

/** Checks the read models of random histories. */
async function afterwards(check: (history: History) => Promise<void>): Promise<void> {
  const tried = async (history: History) => {
    await project(splitIntoBatches(history.events, [50]));
    await check(history);
  };
  let last = Promise.resolve();
  const trial = fc.asyncProperty(createHistoryArbitrary(100), (history) => {
    last = tried(history);
    return last;
  });
  await fc.assert(trial, { numRuns: RUNS, interruptAfterTimeLimit: TIME_LIMIT_MS });
  await last; // an interrupted run would otherwise continue during the next test
}

type Named<Type extends DomainEvent['type']> = Extract<HistoryEvent, { type: Type }>;

function those<Type extends DomainEvent['type']>({ events: facts }: History, ...types: readonly Type[]): Named<Type>[] {
  return facts.filter((fact): fact is Named<Type> => (types as readonly string[]).includes(fact.type));
}

const sum = (amounts: readonly string[]) => money.sum(amounts.map(money.parseJsonAmount));

/** Returns the market value of a payment or of its reversed part. */
const marketOf = (market: string | { readonly amount: string }) =>
  typeof market === 'string' ? market : market.amount;

const ALL_KEYS = { includesRevoked: true, page: 1, size: 100 };

describe('the journal', () => {
  interface Line {
    readonly position: string;
    readonly account: string;
    readonly customer: string | null;
    readonly amount: string;
  }
  const lines = async () => (await books.pool.query<Line>('select * from journal')).rows;

  test('sums to zero for every transaction and in total', () =>
    afterwards(async () => {
      const entries = Map.groupBy(await lines(), ({ position }) => position);
      for (const entry of entries.values()) expect(sum(entry.map(({ amount }) => amount))).toBe(0n);
      expect(sum((await lines()).map(({ amount }) => amount))).toBe(0n);
    }));

  test('has a transaction for every event that moves money and for no other event', () =>
    afterwards(async (history) => {
      const moved = those(
        history,
        'CreditAdded',
        'CreditReversed',
        'BalanceAdjusted',
        'FundsHeld',
        'HoldExtended',
        'HoldReleased',
        'HoldExpired',
        'HoldSettled',
        'ChargeAbsorbed',
        'ChargeReversed',
        'PaymentFeeCharged',
        'VideoCostClosed',
        'ChallengePaid',
        'ChallengeOverpaid',
        'ChallengeForfeited',
      );
      const some = moved.filter(({ data }) =>
        JSON.stringify(data).match(/"(amount|held|charged|price|cost)":"-?[1-9]/),
      );
      const rated = those(history, 'PaymentReceived', 'PaymentReversed').filter(
        ({ data }) => data.market !== undefined && marketOf(data.market) !== data.amount,
      );
      const positions = new Set((await lines()).map(({ position }) => BigInt(position)));
      const expected = [...some, ...rated].map(({ position }) => position);
      expect([...positions].toSorted()).toEqual(expected.toSorted());
    }));

  test('owes every customer the amounts in the balances', () =>
    afterwards(async ({ accounts }) => {
      const all = await lines();
      const owed = (account: string, customer: string) => {
        const own = all.filter((line) => line.account === account && line.customer === customer);
        return money.negate(sum(own.map(({ amount }) => amount)));
      };
      for (const customer of accounts.keys()) {
        expect(await readBalance(books.pool, customer)).toEqual({
          available: owed('customer:available', customer),
          held: owed('customer:held', customer),
        });
      }
    }));

  test('owes the paid but unused amounts of all challenges together', () =>
    afterwards(async ({ challenges: all }) => {
      const owed = (await lines()).filter(({ account }) => account.startsWith('challenge:'));
      const left = [...all.values()].map(({ available }) => available);
      const held = [...all.values()].flatMap(({ holds }) => [...holds.values()].map(({ amount }) => amount));
      expect(-sum(owed.map(({ amount }) => amount))).toBe(money.sum([...left, ...held]));
      for (const { customer } of owed) expect(all.has(customer ?? '')).toBe(true);
    }));

  test('has payments, fees, revenue, overruns and provider costs in their ledger accounts', () =>
    afterwards(async (history) => {
      const all = await lines();
      const booked = (name: string) => sum(all.filter(({ account }) => account === name).map(({ amount }) => amount));
      const charges = those(history, 'HoldSettled', 'ChargeAbsorbed').map(({ data }) => data.charge);
      const charged = those(history, 'HoldSettled').map(({ data }) => data.charged);
      const paid = those(history, 'CreditAdded', 'CreditReversed').map(({ data }) => data.amount);
      const fees = those(history, 'PaymentFeeCharged').map(({ data }) => data.amount);
      const once = those(history, 'ChallengePaid', 'ChallengeOverpaid').map(({ data }) => data.amount);
      const came = sum([...paid, ...once]);
      expect(booked('clearing:btc-lightning') + booked('rates:btc-lightning')).toBe(came - sum(fees));
      const forfeited = those(history, 'ChallengeForfeited').map(({ data }) => data.amount);
      expect(booked('revenue:unclaimed')).toBe(-sum(forfeited));
      expect(booked('fees:btc-lightning')).toBe(sum(fees));
      const sold = ['chat_completion', 'video_generation', 'data_enrichment', 'late'];
      const revenue = sold.map((surface) => booked(`revenue:${surface}`));
      expect(sum(revenue.map(String))).toBe(-sum(charges.map(({ price }) => price)));
      expect(booked('overrun')).toBe(sum(charges.map(({ price }) => price)) - sum(charged));
      const closed = those(history, 'VideoCostClosed').map(({ data }) => data.cost);
      const payable = ['payable:router', 'payable:one', 'payable:other'].map(booked);
      expect(sum(payable.map(String))).toBe(-sum([...charges.map(({ cost }) => cost), ...closed]));
    }));
});

describe('a balance', () => {
  test('is equal to the state that the account decides on', () =>
    afterwards(async ({ accounts }) => {
      for (const [id, { available, held }] of accounts)
        expect(await readBalance(books.pool, id)).toEqual({ available, held });
    }));

  test('does not exist for an unknown account', async () => {
    expect(await readBalance(books.pool, crypto.randomUUID())).toBeUndefined();
  });

  test('does not exist for a challenge, so that there are as many balances as accounts', () =>
    afterwards(async ({ accounts, challenges }) => {
      for (const id of challenges.keys()) expect(await readBalance(books.pool, id)).toBeUndefined();
      const { rows } = await books.pool.query('select count(*)::int as all from balances');
      expect(rows).toEqual([{ all: accounts.size }]);
    }));
});

describe('open holds', () => {
  /** The open holds by the stream of their payer. */
  const payersIn = ({ accounts, challenges }: History) => [
    ...[...accounts].map(([id, { holds }]) => [`account-${id}`, holds] as const),
    ...[...challenges].map(([id, { holds }]) => [`challenge-${id}`, holds] as const),
  ];

  test('have the payers, amounts and owners of the holds in the state of accounts and challenges', () =>
    afterwards(async (history) => {
      const { rows } = await books.pool.query('select hold_id, payer, amount, owner from holds');
      const found = rows.map((row) => `${row.hold_id} ${row.payer} ${row.amount} ${row.owner}`);
      const open = payersIn(history).flatMap(([payer, holds]) =>
        [...holds.entries()].map(([id, { amount, owner = null }]) => `${id} ${payer} ${amount} ${owner}`),
      );
      expect(found.toSorted()).toEqual(open.toSorted());
    }));

  test('have payers that are found by the owners of the holds', () =>
    afterwards(async (history) => {
      const owners = ['gateway-1', 'gateway-3'];
      const found = await findPayersByHoldOwner(books.pool, owners);
      const expected = payersIn(history).flatMap(([payer, holds]) =>
        owners
          .filter((owner) => [...holds.values()].some((hold) => hold.owner === owner))
          .map((owner) => `${payer} ${owner}`),
      );
      expect(found.map(({ payer, owner }) => `${payer} ${owner}`).toSorted()).toEqual(expected.toSorted());
    }));

  test('are overdue from their expiry on', () =>
    afterwards(async (history) => {
      const overdue = (holds: AccountState['holds'], now: string) =>
        [...holds.values()].some(({ expiresAt }) => expiresAt <= now);
      for (const now of [history.end, LATER]) {
        const expected = payersIn(history).flatMap(([payer, holds]) => (overdue(holds, now) ? [payer] : []));
        expect((await findPayersWithOverdueHolds(books.pool, now)).toSorted()).toEqual(expected.toSorted());
      }
    }));
});

describe('a challenge', () => {
  test('has a row from its payment on, and none before', () =>
    afterwards(async ({ challenges }) => {
      const { rows } = await books.pool.query<{ challenge_id: string }>('select challenge_id from challenges');
      const paid = [...challenges].filter(([, challenge]) => challenge.paid !== undefined);
      expect(rows.map(({ challenge_id }) => challenge_id).toSorted()).toEqual(paid.map(([id]) => id).toSorted());
    }));

  test('has the amounts of its decider state, and is not listed if nothing is available, held or forfeited', () =>
    afterwards(async ({ challenges }) => {
      const views = new Map((await readChallenges(books.pool)).map((each) => [each.challengeId, each]));
      for (const [id, { available, charged, forfeited, claims, served, holds }] of challenges) {
        const held = money.sum([...holds.values()].map(({ amount }) => amount));
        if (available + held + forfeited === 0n) expect(views.has(id)).toBe(false);
        else expect(views.get(id)).toMatchObject({ available, held, charged, forfeited, claims, served });
      }
    }));

  test('is unclaimed if it was paid before a time, and has an available amount and no hold', () =>
    afterwards(async ({ challenges, end }) => {
      for (const before of [FRIDAY, end, LATER]) {
        const left = [...challenges].filter(
          ([, { available, holds, paid }]) => available > 0n && holds.size === 0 && (paid?.at ?? LATER) < before,
        );
        const found = await findUnclaimedChallenges(books.pool, before);
        expect(found.toSorted()).toEqual(left.map(([id]) => id).toSorted());
      }
    }));
});

describe('a key', () => {
  test('has the settings and the usage that the account decides on', () =>
    afterwards(async ({ accounts, end }) => {
      for (const [accountId, account] of accounts) {
        const { keys: views } = await readKeys(books.pool, accountId, ALL_KEYS, end);
        expect(views.map(({ keyId }) => keyId).toSorted()).toEqual(
          [...account.keys.entries()].map(([id]) => id).toSorted(),
        );
        for (const view of views) {
          const key = account.keys.get(view.keyId);
          const { name, limit, resetPeriod, expireAt } = view;
          expect({ name, limit, resetPeriod, expireAt, revoked: view.revokedAt !== null }).toEqual({
            name: key?.name,
            limit: key?.limit,
            resetPeriod: key?.resetPeriod,
            expireAt: key?.expireAt,
            revoked: key?.revoked,
          });
          const current = key && getWindowId(key.resetPeriod, end) <= key.window;
          expect(view.usedInPeriod).toBe(current ? key.used : 0n);
        }
      }
    }));

  test('has a total usage equal to its charges', () =>
    afterwards(async (history) => {
      const charges = Map.groupBy(those(history, 'HoldSettled'), ({ data }) => data.keyId);
      for (const accountId of history.accounts.keys()) {
        for (const { keyId, usedInAll } of (await readKeys(books.pool, accountId, ALL_KEYS, history.end)).keys) {
          expect(usedInAll).toBe(sum((charges.get(keyId) ?? []).map(({ data }) => data.charged)));
        }
      }
    }));

  const created = (resetPeriod: ResetPeriod | null, at: string) => ({
    type: 'KeyCreated',
    data: {
      keyId: 'k',
      name: 'k',
      hash: 'h',
      secret: {},
      limit: '100',
      resetPeriod,
      expireAt: null,
      ...UNRESTRICTED_ACCESS,
      at,
    },
  });
  const changed = (resetPeriod: ResetPeriod, at: string) => ({
    type: 'KeyUpdated',
    data: { keyId: 'k', resetPeriod, at },
  });
  const charged = (amount: string, heldAt: string) => ({
    type: 'HoldSettled',
    data: { keyId: 'k', charged: amount, heldAt, at: '2026-11-22T12:00:00.000Z' },
  });

  test.each<[string, readonly object[], string, bigint, bigint]>([
    [
      'counts a charge in the window of its request',
      [created('daily', FRIDAY), charged('5', SATURDAY), charged('7', FRIDAY)],
      SATURDAY,
      5n,
      12n,
    ],
    ['has no usage in a window without charges', [created('daily', FRIDAY), charged('7', FRIDAY)], SATURDAY, 0n, 7n],
    [
      'starts a new window when its reset period changes, and does not count earlier requests in this window',
      [created('daily', FRIDAY), charged('5', FRIDAY), changed('weekly', SATURDAY), charged('7', FRIDAY)],
      SATURDAY,
      0n,
      12n,
    ],
    [
      'counts charges of requests after a change of its reset period',
      [created(null, FRIDAY), charged('5', FRIDAY), changed('weekly', FRIDAY), charged('7', SATURDAY)],
      SATURDAY,
      7n,
      12n,
    ],
    [
      'counts all charges if it has no reset period',
      [created(null, FRIDAY), charged('5', FRIDAY), charged('7', SATURDAY)],
      '2036-01-01T00:00:00.000Z',
      12n,
      12n,
    ],
  ])('%s', async (_, facts, now, usedInPeriod, usedInAll) => {
    const accountId = crypto.randomUUID();
    const events = facts.map(
      (fact, i) => ({ ...fact, stream: `account-${accountId}`, position: BigInt(i) }) as HistoryEvent,
    );
    await project(
      splitIntoBatches(events),
      projections.filter(({ name }) => name === 'keys'),
    );
    expect(await readKeys(books.pool, accountId, ALL_KEYS, now)).toMatchObject({
      keys: [{ usedInPeriod, usedInAll }],
      total: 1,
    });
  });

  test('is found by its hash together with its owner', () =>
    afterwards(async (history) => {
      const revoked = new Set(those(history, 'KeyRevoked').map(({ data }) => data.keyId));
      for (const { stream, data } of those(history, 'KeyCreated')) {
        const { keyId, hash } = data;
        const owner = { keyId, accountId: getStreamId({ stream }), revoked: revoked.has(keyId), expireAt: null };
        const { models, blocked } = history.accounts.get(owner.accountId)?.keys.get(keyId) ?? data;
        expect(await findKeyOwner(books.pool, ['of another master key', hash])).toEqual({ ...owner, models, blocked });
      }
      expect(await findKeyOwner(books.pool, ['hash of nothing'])).toBeUndefined();
    }));
});

describe('a top-up', () => {
  test('has the payments and credits of its events', () =>
    afterwards(async (history) => {
      for (const [id, { invoice, payments }] of history.topups) {
        const view = foldTopup(
          history.events.filter((fact) => fact.stream === `topup-${id}`),
          history.end,
        );
        const received = those(history, 'PaymentReceived').filter((fact) => getStreamId(fact) === id);
        const reversed = those(history, 'PaymentReversed').filter((fact) => getStreamId(fact) === id);
        const paid = [...received, ...reversed];
        const settled = [...payments.values()].every(({ isCredited }) => isCredited);
        const unpaid = (invoice?.expiresAt ?? '') <= history.end ? 'Expired' : 'New';
        const paidUnits = paid.reduce((all, { data }) => all + BigInt(data.units), 0n);
        const came = received.reduce((all, { data }) => all + BigInt(data.units), 0n);
        const inFull = came >= BigInt(invoice?.units ?? 0) ? 'Settled' : unpaid;
        const credited = paidUnits > 0n ? inFull : 'Invalid';
        expect(view).toMatchObject({
          topupId: id,
          accountId: invoice?.accountId,
          coin: 'BTC',
          units: BigInt(invoice?.units ?? 0),
          paidUnits,
          destination: invoice?.destination,
          credited: sum(paid.flatMap(({ data }) => [data.amount, data.bonus])),
          status: received.length === 0 ? unpaid : settled ? credited : 'Processing',
        });
      }
      expect(foldTopup([], history.end)).toBeUndefined();
    }));

  test('is found by the reference of its payment backend', () =>
    afterwards(async (history) => {
      for (const fact of those(history, 'InvoiceIssued')) {
        const { backend, reference } = fact.data;
        expect(await findTopupIds(books.pool, backend, [reference, 'unknown'])).toEqual(
          new Map([[reference, getStreamId(fact)]]),
        );
        expect(await findTopupIds(books.pool, 'another', [reference])).toEqual(new Map());
      }
    }));
});

describe('the query history', () => {
  const everything = async (accountId: string) =>
    (await new QueryHistory(books.pool).read({ accountId }, 1, 1_000)).records;

  test('has every ended request once, with its charge', () =>
    afterwards(async (history) => {
      const ended = those(history, 'HoldSettled', 'HoldReleased', 'HoldExpired');
      const payers = [...history.accounts.keys(), ...history.challenges.keys()];
      const records = await Promise.all(payers.map(everything));
      const found = records.flat().map(({ requestId, price }) => `${requestId} ${price}`);
      const paid = (fact: (typeof ended)[number]) => (fact.type === 'HoldSettled' ? fact.data.charged : '0');
      expect(found.toSorted()).toEqual(ended.map((fact) => `${fact.data.holdId} ${paid(fact)}`).toSorted());
    }));

  test('has the same records in the same order in pages, also if the pages start at cached page ends', () =>
    afterwards(async ({ accounts }) => {
      for (const accountId of accounts.keys()) {
        const all = await everything(accountId);
        const history = new QueryHistory(books.pool);
        const pages = await Promise.all([1, 2, 3, 4].map((page) => history.read({ accountId }, page, 5)));
        for (const page of [1, 2, 3, 4]) pages.push(await history.read({ accountId }, page, 5)); // from cached ends
        const first = all.slice(0, 20);
        expect(pages.flatMap(({ records }) => records)).toEqual([...first, ...first]);
        for (const { total, isTotalExact } of pages) expect([total, isTotalExact]).toEqual([all.length, true]);
      }
    }));

  test('is filtered by key, time, model, source and type', () =>
    afterwards(async ({ accounts }) => {
      for (const accountId of accounts.keys()) {
        const all = await everything(accountId);
        const [some] = all.toReversed();
        if (!some) continue;
        const matching = async (filter: object) =>
          (await new QueryHistory(books.pool).read({ accountId, ...filter }, 1, 1_000)).records;
        expect(await matching({ from: some.at, to: some.at })).toEqual(all.filter(({ at }) => at === some.at));
        const chats = all.filter(({ model }) => model === 'm');
        expect(await matching({ model: 'm', source: 'api', type: 'chat_completion' })).toEqual(chats);
        expect(await matching({ model: 'other' })).toEqual([]);
        const { keyId } = some;
        if (keyId !== null) expect(await matching({ keyId })).toEqual(all.filter((each) => each.keyId === keyId));
      }
    }));

  describe('of an account with many records', () => {
    const accountId = '30000000-0000-4000-8000-000000000000';
    const MANY = MAX_HISTORY_SCAN + 3_000;

    beforeAll(async () => {
      await books.clear();
      await books.pool.query(
        `insert into queries select n, timestamptz '2026-01-01' + n * interval '1 s', $1, case when n % 5000 = 1 then 'seldom' end,
                case when n in (2, 6, $2) then 'rare' else 'm' end, 1, 1, n, 'chat_completion', 'api', false, false, false, null, n
           from generate_series(1, $2::int) as n`,
        [accountId, MANY],
      );
    });

    const prices = ({ records }: { readonly records: readonly { readonly price: bigint }[] }) =>
      records.map(({ price }) => Number(price));

    test('has the number of all records on every page, and returns every record once', async () => {
      const history = new QueryHistory(books.pool);
      const all: number[] = [];
      for (let page = 1, pages = 1; page <= pages; page++) {
        const read = await history.read({ accountId }, page, 500);
        all.push(...prices(read));
        pages = Math.ceil(read.total / 500);
        expect(read).toMatchObject({ total: MANY, isTotalExact: true, searchedBackTo: null });
      }
      expect(all).toEqual(Array.from({ length: MANY }, (_, i) => MANY - i));
    });

    test('counts a limited number of records after each page if a model is requested, or too much of a day', async () => {
      for (const filter of [{ model: 'm' }, { from: '2026-01-01T00:00:01.000Z', to: '2026-01-01T23:00:00.000Z' }]) {
        const history = new QueryHistory(books.pool);
        const first = await history.read({ accountId, ...filter }, 1, 500);
        expect(first).toMatchObject({ total: 500 + MAX_COUNTED_AFTER_PAGE, isTotalExact: false });
        const second = await history.read({ accountId, ...filter }, 2, 500);
        expect(second).toMatchObject({ total: 1_000 + MAX_COUNTED_AFTER_PAGE, isTotalExact: false });
      }
    });

    test('has the number of records of any time range', async () => {
      const history = new QueryHistory(books.pool);
      const count = async (from: string | undefined, to: string | undefined) => {
        const { total, isTotalExact } = await history.read(
          { accountId, ...(from && { from }), ...(to && { to }) },
          1,
          1,
        );
        return isTotalExact ? total : 'not exact';
      };
      expect(await count('2026-01-01T00:00:00.000Z', '2026-01-01T23:59:59.999Z')).toBe(MANY);
      expect(await count('2026-01-01T00:00:02.000Z', '2026-01-01T00:00:04.999Z')).toBe(3);
      expect(await count('2026-01-01T03:36:30.000Z', '2026-01-05T12:00:00.000Z')).toBe(11);
      expect(await count('2025-12-31T12:00:00.000Z', '2026-01-02T12:00:00.000Z')).toBe(MANY);
      expect(await count('2025-12-31T12:00:00.000Z', '2026-01-01T00:00:07.000Z')).toBe(7);
      expect(await count('2026-01-02T00:00:00.000Z', undefined)).toBe(0);
      expect(await count(undefined, '2025-12-31T23:59:59.999Z')).toBe(0);
      expect(await count('2026-01-03T00:00:00.000Z', '2026-01-01T00:00:00.000Z')).toBe(0);
      expect(await count('0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z')).toBe(MANY);
      expect(await count('9999-12-31T12:00:00.000Z', undefined)).toBe(0);
    });

    test('continues after the end of the previous page, even if newer records were added', async () => {
      const history = new QueryHistory(books.pool);
      await history.read({ accountId }, 1, 10);
      await books.pool.query(
        `insert into queries select (json_populate_record(q, '{"position": 0, "at": "2027-01-01"}')).* from queries q where position = 1`,
      );
      expect(prices(await history.read({ accountId }, 2, 10))).toEqual(
        Array.from({ length: 10 }, (_, i) => MANY - 10 - i),
      );
      await books.pool.query('delete from queries where position = 0');
    });

    test('serves pages beyond the scan limit in order if another gateway served the last 50 pages', async () => {
      const [one, other] = [new QueryHistory(books.pool), new QueryHistory(books.pool)];
      for (const history of [one, other])
        for (let page = 1; page <= 70; page++) await history.read({ accountId }, page, 100);
      for (let page = 71; page <= 120; page++) await other.read({ accountId }, page, 100);
      expect(prices(await one.read({ accountId }, 121, 100))).toEqual(
        Array.from({ length: 100 }, (_, i) => MANY - 12_000 - i),
      );
    });

    test('rejects pages beyond the scan limit, and returns an empty page after the last record', async () => {
      const history = new QueryHistory(books.pool);
      await expect(history.read({ accountId }, 102, 100)).rejects.toThrow(PageOutOfRangeError);
      const filter = { accountId, to: '2026-01-01T00:01:40.000Z' };
      const total = { total: 100, isTotalExact: true, searchedBackTo: null };
      for (const page of [7, 1_000_000_000])
        expect(await history.read(filter, page, 20)).toEqual({ records: [], ...total });
      expect(prices(await history.read(filter, 5, 20))).toEqual(Array.from({ length: 20 }, (_, i) => 20 - i));
    });

    test('finds all records of a rarely used key, and reports how far back it searched for a model', async () => {
      const history = new QueryHistory(books.pool);
      expect(prices(await history.read({ accountId, keyId: 'seldom' }, 1, 20))).toEqual([10_001, 5_001, 1]);
      const first = await history.read({ accountId, model: 'rare' }, 1, 20);
      expect([prices(first), first.total, first.isTotalExact]).toEqual([[MANY], 1, false]);
      expect(first.searchedBackTo).toBe('2026-01-01T00:50:00.000Z');
      const next = await history.read({ accountId, model: 'rare', to: first.searchedBackTo as string }, 1, 20);
      expect([prices(next), next.isTotalExact, next.searchedBackTo]).toEqual([[6, 2], true, null]);
    });
  });
});
