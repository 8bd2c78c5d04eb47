import { describe, expect, test } from '@jest/globals';
import type { Attempt, Charge, HoldEvent, Query } from '#domain';
import { type EventReader, parseUsd, type StoredEvent } from '#kernel';
import { createCharge } from '#testing';
import { printAccruals } from './accruals.ts';
import { printCosts } from './costs.ts';
import type { EventPeriod } from './event-filter.ts';

const AT = '2026-11-20T12:00:00.000Z';
const NOTHING_POSSIBLE = '0 costs may be invoiced that the ledger does not contain: 0 USD at most';
const NOTHING_BOOKED = '0 costs in the ledger were paid by no customer: 0 USD';
const ONE_POSSIBLE = '1 costs may be invoiced that the ledger does not contain: 0.5 USD at most';
const KILLED = 'h  gateway_killed, m, account-a: 0.5 USD at most';

const amount = (usd: string) => parseUsd(usd).toString();

function buildHold(held: string, type: Query['type'] = 'image_generation') {
  const query = { model: 'm', type, source: 'api', online: false, free: false } as const;
  return { holdId: 'h', keyId: null, held: amount(held), heldAt: AT, query, at: AT };
}

const buildAttempt = (openCost?: string): Attempt => ({
  provider: 'p',
  creditor: 'router',
  model: 'm',
  outcome: 'timeout',
  milliseconds: 1,
  ...(openCost === undefined ? {} : { openCost: amount(openCost) }),
});

const expire = (held = '0.5', type?: Query['type']): HoldEvent => ({
  type: 'HoldExpired',
  data: buildHold(held, type),
});
const release = (...attempts: readonly Attempt[]): HoldEvent => ({
  type: 'HoldReleased',
  data: { ...buildHold('0.5'), errorCode: 'timeout', reason: '', attempts },
});
const settle = (charge: Charge): HoldEvent => ({
  type: 'HoldSettled',
  data: { ...buildHold('0.5'), charged: charge.price, charge },
});
const absorb = (charge: Charge): HoldEvent => ({ type: 'ChargeAbsorbed', data: { holdId: 'h', charge, at: AT } });
const reverse = ({ price: charged }: Charge): HoldEvent => ({
  type: 'ChargeReversed',
  data: { ...buildHold('0.5'), charged },
});

/** The booking time of the event at a position. */
const getTime = (position: number) => `2026-11-20T12:0${position}:00.000Z`;

/** Prints a list for events that are booked one minute after the other, each in a batch of its own. */
async function list(
  events: readonly HoldEvent[],
  period: Partial<EventPeriod> = {},
  printList = printAccruals,
): Promise<readonly string[]> {
  const stored = events.map((event, i) => {
    const location = { stream: 'account-a', revision: i, position: BigInt(i), recordedAt: getTime(i) };
    return { ...event, id: String(i), metadata: {}, ...location } as unknown as StoredEvent;
  });
  const store = {
    async *readAll() {
      for (const event of stored) yield { events: [event] };
    },
    async *read(stream: string) {
      yield stored.filter((event) => event.stream === stream);
    },
  } as unknown as EventReader;
  const lines: string[] = [];
  await printList(store, { since: undefined, until: undefined, ...period }, (line) => lines.push(line));
  return lines;
}

describe('the hold of a killed gateway', () => {
  test('is listed with its amount', async () => {
    expect(await list([expire()])).toEqual([ONE_POSSIBLE, `${getTime(0)}  ${KILLED}`, NOTHING_BOOKED]);
  });

  test('is listed with the cost in the ledger once its charge has arrived', async () => {
    expect(await list([expire(), absorb(createCharge({ cost: amount('0.2') }))])).toEqual([
      NOTHING_POSSIBLE,
      '1 costs in the ledger were paid by no customer: 0.2 USD',
      `${getTime(1)}  h  expired, m at p, account-a: 0.2 USD`,
    ]);
  });

  test('is not listed if it is free, or for a video that no provider was called for', async () => {
    expect(await list([expire('0'), expire('3', 'video_generation')])).toEqual([NOTHING_POSSIBLE, NOTHING_BOOKED]);
  });
});

describe('a call without a response', () => {
  test('is listed with the provider that may invoice it, and a call that was rejected is not', async () => {
    expect(await list([release(buildAttempt(), { ...buildAttempt('0.2'), vendorId: 'r1' })])).toEqual([
      '1 costs may be invoiced that the ledger does not contain: 0.2 USD at most',
      `${getTime(0)}  h  failed (timeout), m at router as r1, account-a: 0.2 USD at most`,
      NOTHING_BOOKED,
    ]);
  });

  test('is listed once if another call of its request succeeds or is absorbed', async () => {
    const charge = createCharge({ cost: '0' }, { attempts: [buildAttempt('0.2')] });
    const line = `h  failed (timeout), m at router, account-a: 0.2 USD at most`;
    for (const [position, events] of [
      [0, [settle(charge)]],
      [0, [release(buildAttempt('0.2')), absorb(charge)]],
      [1, [expire(), absorb(charge)]],
    ] as const)
      expect((await list(events)).slice(1)).toEqual([`${getTime(position)}  ${line}`, NOTHING_BOOKED]);
  });
});

describe('a cost in the ledger', () => {
  test('is listed if the operator absorbs an item of a charge', async () => {
    const charge = createCharge({ cost: amount('0.08'), absorbed: 'not_delivered', vendorId: 'r2' });
    for (const [position, events] of [
      [0, [settle(charge)]],
      [1, [release(), absorb(charge)]],
      [1, [expire(), absorb(charge)]],
    ] as const)
      expect(await list(events)).toEqual([
        NOTHING_POSSIBLE,
        '1 costs in the ledger were paid by no customer: 0.08 USD',
        `${getTime(position)}  h  not_delivered, m at p as r2, account-a: 0.08 USD`,
      ]);
  });

  test('is listed with all items of a request that failed', async () => {
    const charge = createCharge({ cost: amount('0.08'), absorbed: 'upstream_error' });
    const items = [...charge.items, ...createCharge({ cost: amount('0.04') }).items];
    expect((await list([release(), absorb({ ...charge, items })])).slice(1)).toEqual([
      '2 costs in the ledger were paid by no customer: 0.12 USD',
      `${getTime(1)}  h  not_delivered (upstream_error), m at p, account-a: 0.08 USD`,
      `${getTime(1)}  h  not_delivered, m at p, account-a: 0.04 USD`,
    ]);
  });

  test('is not listed if the customer pays for it', async () => {
    expect(await list([settle(createCharge({ cost: '1', price: '2' }))])).toEqual([NOTHING_POSSIBLE, NOTHING_BOOKED]);
  });
});

describe('the costs of a request', () => {
  const items = [
    ...createCharge({ cost: amount('0.08'), price: amount('0.16') }).items,
    ...createCharge({ cost: amount('0.04'), absorbed: 'not_delivered' }).items,
  ];
  const attempts = [buildAttempt('0.2')];
  const charge: Charge = { ...createCharge(), items, attempts, price: amount('0.16') };
  const open = 'failed (timeout) 0.2';
  const undelivered = 'not_delivered 0.04';
  const paid = (reason: string) => `${reason} 0.08`;

  test.each<[ending: string, events: readonly HoldEvent[], costs: readonly string[]]>([
    ['is settled', [settle(charge)], [open, undelivered]],
    ['is settled and reversed', [settle(charge), reverse(charge)], [open, undelivered, paid('reversed')]],
    ['is released', [release(...attempts)], [open]],
    ['is released with a cost', [release(...attempts), absorb(charge)], [open, paid('not_delivered'), undelivered]],
    ['expires or is abandoned', [expire()], ['gateway_killed 0.5']],
    ['expires before its charge', [expire(), absorb(charge)], [open, paid('expired'), undelivered]],
  ])('are listed once if its hold %s', async (_, events, costs) => {
    const lines = (await list(events)).filter((line) => line.startsWith('2026-'));
    const listed = lines.map((line) => line.replace(/^\S+ {2}h {2}([\w ()]+), .*: ([\d.]+) USD.*$/, '$1 $2'));
    expect(listed).toEqual(costs);
  });

  test('include those of another hold in the stream of a reversal only if they are its own', async () => {
    const other = { ...settle(charge), data: { ...settle(charge).data, holdId: 'other' } } as HoldEvent;
    const lines = await list([other, settle(charge), reverse(charge)]);
    expect(lines.filter((line) => line.includes('reversed'))).toEqual([
      `${getTime(2)}  h  reversed, m at p, account-a: 0.08 USD`,
    ]);
  });

  test('are paid by the customer before their reversal', async () => {
    const lines = await list([settle(charge), reverse(charge)], { until: '0' });
    expect(lines.join()).not.toContain('reversed');
  });
});

describe('a period', () => {
  const events = [release(buildAttempt('0.1')), expire(), release(buildAttempt('0.2')), absorb(createCharge())];
  const listAmounts = async (period: Partial<EventPeriod>) =>
    (await list(events, period)).flatMap((line) => (/ ([\d.]+) USD at most$/.exec(line) ?? []).slice(1));

  test('includes all events by default, in their order', async () => {
    expect(await listAmounts({})).toEqual(['0.3', '0.1', '0.2']);
  });

  test('begins at a time, and ends at a time or position', async () => {
    expect(await listAmounts({ since: getTime(1) })).toEqual(['0.2', '0.2']);
    expect(await listAmounts({ since: getTime(1), until: '2' })).toEqual(['0.7', '0.5', '0.2']);
    expect(await listAmounts({ until: getTime(1) })).toEqual(['0.6', '0.1', '0.5']);
  });

  test('must have valid bounds', async () => {
    await expect(list([], { since: '7' })).rejects.toThrow('--since must be an ISO 8601 time.');
    await expect(list([], { until: 'soon' })).rejects.toThrow('--until must be a position or an ISO 8601 time.');
  });
});

describe('a cost that a provider reported', () => {
  const charge = createCharge({ cost: amount('0.0028'), reportedCost: amount('0.5'), vendorId: 'gen-1' });
  const EXCESS = 'h  reported, m at p as gen-1, account-a: 0.4972 USD at most';

  test('is accrued as far as it exceeds the cost in the ledger, paid by the customer or not', async () => {
    for (const [position, events] of [
      [0, [settle(charge)]],
      [1, [release(), absorb(charge)]],
    ] as const) {
      const [summary, line] = await list(events);
      expect(summary).toBe('1 costs may be invoiced that the ledger does not contain: 0.4972 USD at most');
      expect(line).toBe(`${getTime(position)}  ${EXCESS}`);
    }
  });

  test.each(['0.0028', '0.002825', '0.001'])('is not accrued if it is %s of 0.0028 USD', async (reported) => {
    const other = createCharge({ cost: amount('0.0028'), reportedCost: amount(reported) });
    expect(await list([settle(other)])).toEqual([NOTHING_POSSIBLE, NOTHING_BOOKED]);
  });

  test('is compared with the ledger by model and provider', async () => {
    const agreeing = createCharge({ cost: amount('0.0028'), reportedCost: amount('0.0028') });
    const without = createCharge({ cost: amount('1') });
    const events = [settle(charge), settle(agreeing), settle(without), absorb(charge)];

    const [summary, heading, row, ...more] = await list(events, {}, printCosts);

    expect(summary).toBe(
      '3 calls with a reported cost, 2 of them differ by more than 1 %: 0.9944 USD beyond the ledger',
    );
    expect(heading).toMatch(/^model +provider +calls +different +ledger USD +reported USD +excess USD$/);
    expect(row).toMatch(/^m +p +3 +2 +0\.0084 +1\.0028 +0\.9944$/);
    expect(more).toEqual([]);
  });

  test('is counted in its period', async () => {
    const lines = await list([settle(charge), settle(charge)], { since: getTime(1) }, printCosts);
    expect(lines[0]).toMatch(/^1 calls/);
    expect(await list([settle(charge)], { since: getTime(1) }, printCosts)).toEqual([
      '0 calls with a reported cost, 0 of them differ by more than 1 %: 0 USD beyond the ledger',
    ]);
  });
});
