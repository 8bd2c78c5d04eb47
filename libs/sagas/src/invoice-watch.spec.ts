import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { LightningNode, LightningPayment, TopupPayments } from '#application';
import { VirtualTime } from '../../testing/src/virtual-time.ts';
import type { WatchedInvoice } from './invoice-watch.ts';

const time = new VirtualTime('2026-11-20T12:00:00.000Z');
jest.unstable_mockModule('node:timers/promises', () => ({ setTimeout: time.delay }));
const { watchInvoices } = await import('#sagas');

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A node that settles, reports and breaks off as it is told. */
class Node implements LightningNode {
  readonly settled = new Map<string, LightningPayment>();
  readonly askedAfter: string[] = [];
  readonly broken = new Set<string>();
  subscriptions = 0;
  private reports: ((next: LightningPayment | Error | 'end') => void) | undefined;

  createInvoice(): never {
    throw new Error('nobody makes an invoice here');
  }

  async lookUp(paymentHash: string) {
    this.askedAfter.push(paymentHash);
    if (this.broken.has(paymentHash)) throw new Error('the node has a problem with this one');
    return this.settled.get(paymentHash);
  }

  async *payments(signal: AbortSignal) {
    this.subscriptions++;
    const stopped = new Promise<'end'>((resolve) => signal.addEventListener('abort', () => resolve('end')));
    for (;;) {
      const told = new Promise<LightningPayment | Error | 'end'>((resolve) => {
        this.reports = resolve;
      });
      const next = await Promise.race([told, stopped]);
      if (next === 'end') return;
      if (next instanceof Error) throw next;
      yield next;
    }
  }

  pay(paymentHash: string): LightningPayment {
    const payment = { paymentHash, msat: 1_000_000n, paidAt: time.now() };
    this.settled.set(paymentHash, payment);
    return payment;
  }

  async say(next: LightningPayment | Error | 'end'): Promise<void> {
    await time.pass(0);
    this.reports?.(next);
    await time.pass(0);
  }
}

let node: Node;
let invoices: WatchedInvoice[];
let recorded: string[];
let alarms: string[];
let stop: AbortController;
let watching: Promise<void>;

/** An invoice, and as long as nobody has paid it, an open one. */
function invoice(paymentHash: string, expiresIn = 15 * MINUTE): void {
  invoices.push({ topupId: `topup-of-${paymentHash}`, paymentHash, expiresAt: time.in(expiresIn) });
}

const remembers = async (topupId: string, _expiresAt: string, { paymentHash }: LightningPayment): Promise<void> => {
  recorded.push(`${paymentHash} of ${topupId}`);
  invoices = invoices.filter((each) => each.paymentHash !== paymentHash);
};

function watch({ record = remembers, open = async () => invoices as readonly WatchedInvoice[] } = {}): void {
  const payments = { record } as unknown as TopupPayments;
  const byHash = async (hash: string) => invoices.find(({ paymentHash }) => paymentHash === hash);
  const alarm = (problem: string) => void alarms.push(problem);
  watching = watchInvoices({ node, payments, clock: time, open, byHash, alarm }, stop.signal);
}

beforeEach(() => {
  node = new Node();
  [invoices, recorded, alarms] = [[], [], []];
  stop = new AbortController();
});

afterEach(async () => {
  stop.abort();
  await watching;
});

describe('a payment', () => {
  test('that the node reports is recorded at once', async () => {
    invoice('aa');
    watch();
    await node.say(node.pay('aa'));
    expect(recorded).toEqual(['aa of topup-of-aa']);
  });

  test('that the node never reports is found within two seconds', async () => {
    invoice('aa');
    watch();
    await time.pass(MINUTE);
    node.pay('aa');
    await time.pass(2 * SECOND);
    expect(recorded).toEqual(['aa of topup-of-aa']);
  });

  test('of an invoice that is not ours, or was recorded before, changes nothing', async () => {
    invoice('aa');
    watch();
    await node.say(node.pay('other'));
    await node.say(node.pay('aa'));
    await node.say(node.pay('aa'));
    expect(recorded).toEqual(['aa of topup-of-aa']);
    expect(alarms).toEqual([]);
  });

  test('that cannot be recorded keeps none of the others, and is tried again', async () => {
    invoice('aa');
    invoice('bb');
    let failures = 2;
    const record: typeof remembers = async (topupId, expiresAt, payment) => {
      if (payment.paymentHash === 'aa' && failures-- > 0) throw new Error('no rate');
      return remembers(topupId, expiresAt, payment);
    };
    watch({ record });
    await node.say(node.pay('aa'));
    await node.say(node.pay('bb'));
    expect(recorded).toEqual(['bb of topup-of-bb']);
    await time.pass(4 * SECOND);
    expect(recorded).toEqual(['bb of topup-of-bb', 'aa of topup-of-aa']);
    const problem = 'the payment of top-up topup-of-aa could not be recorded; trying again';
    expect(alarms).toEqual([problem, problem]);
  });
});

describe('a subscription', () => {
  test('that breaks off is an alarm, and is made again a second later', async () => {
    invoice('aa');
    watch();
    await node.say(new Error('connection reset'));
    expect(alarms).toEqual(['the Lightning node no longer reports payments; asking it again']);
    expect(node.subscriptions).toBe(1);
    await time.pass(SECOND);
    expect(node.subscriptions).toBe(2);
    await node.say(node.pay('aa'));
    expect(recorded).toEqual(['aa of topup-of-aa']);
  });

  test('that the node ends is made again as well', async () => {
    watch();
    await node.say('end');
    await time.pass(SECOND);
    expect(node.subscriptions).toBe(2);
    expect(alarms).toEqual([]);
  });

  test('loses nothing while it is broken off', async () => {
    invoice('aa');
    watch();
    await time.pass(SECOND);
    await node.say(new Error('connection reset'));
    node.pay('aa');
    await time.pass(2 * SECOND);
    expect(recorded).toEqual(['aa of topup-of-aa']);
  });

  test('ends with the watch, without an alarm', async () => {
    watch();
    await time.pass(MINUTE);
    stop.abort();
    await watching;
    await time.pass(MINUTE);
    expect([node.subscriptions, alarms]).toEqual([1, []]);
  });
});

describe('the node is asked after', () => {
  const timesIn = async (duration: number) => {
    node.askedAfter.length = 0;
    await time.pass(duration);
    return node.askedAfter.length;
  };

  test('an open invoice every two seconds, an expired one every minute, an old one every hour', async () => {
    invoice('aa', 15 * MINUTE);
    watch();
    await time.pass(SECOND);
    expect(await timesIn(14 * MINUTE)).toBe(14 * 30);
    await time.pass(2 * MINUTE);
    expect(await timesIn(30 * MINUTE)).toBe(30);
    await time.pass(HOUR);
    expect(await timesIn(3 * HOUR)).toBe(3);
  });

  test('invoices that may still be paid, also late: those of a week', async () => {
    const since: string[] = [];
    watch({
      open: async (...asked: string[]) => {
        since.push(...asked);
        return [];
      },
    });
    await time.pass(0);
    expect(since).toEqual([time.in(-7 * DAY)]);
  });

  test('every invoice, though it fails with some of them each time', async () => {
    for (const hash of ['bad', 'aa', 'worse', 'bb', 'cc']) invoice(hash);
    node.broken.add('bad').add('worse');
    for (const hash of ['aa', 'bb', 'cc']) node.pay(hash);
    watch();
    await time.pass(10 * SECOND);
    expect(recorded.toSorted()).toEqual(['aa of topup-of-aa', 'bb of topup-of-bb', 'cc of topup-of-cc']);
    expect(alarms).toContain('open invoices could not be asked after; trying again');
    node.broken.clear();
    node.pay('bad');
    await time.pass(4 * SECOND);
    expect(recorded).toContain('bad of topup-of-bad');
  });

  test('nothing while the read model does not answer, and then again', async () => {
    invoice('aa');
    node.pay('aa');
    let failures = 3;
    watch({ open: async () => (failures-- > 0 ? Promise.reject(new Error('away')) : invoices) });
    await time.pass(5 * SECOND);
    expect([node.askedAfter, alarms.length]).toEqual([[], 3]);
    await time.pass(2 * SECOND);
    expect(recorded).toEqual(['aa of topup-of-aa']);
  });

  test('no more once the watch has ended', async () => {
    for (const hash of ['aa', 'bb']) invoice(hash);
    const lookUp = node.lookUp.bind(node);
    node.lookUp = async (hash) => {
      stop.abort();
      return lookUp(hash);
    };
    watch();
    await watching;
    expect(node.askedAfter).toEqual(['aa']);
  });
});
