import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import {
  type AwaitedTopup,
  type BackendPayment,
  type PaymentBackend,
  PaymentBackends,
  type TopupPayments,
} from '#application';
import { VirtualTime } from '../../testing/src/virtual-time.ts';

const time = new VirtualTime('2026-11-20T12:00:00.000Z');
jest.unstable_mockModule('node:timers/promises', () => ({ setTimeout: time.delay }));
const { watchInvoices } = await import('#sagas');

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

type Report = { readonly hint: string } | Error | 'end';

/** A node that settles, reports and breaks off as it is told. */
class Node implements PaymentBackend {
  readonly name = 'lnd';
  readonly batch: number = 1;
  readonly settled = new Map<string, BackendPayment>();
  readonly askedAfter: string[] = [];
  readonly broken = new Set<string>();
  subscriptions = 0;
  private reports: ((next: Report) => void) | undefined;

  request(): never {
    throw new Error('nobody asks for a payment here');
  }

  async look(references: readonly string[]) {
    this.askedAfter.push(...references);
    if (references.some((each) => this.broken.has(each))) throw new Error('the node has a problem with this one');
    return references.flatMap((each) => this.settled.get(each) ?? []);
  }

  async *hints(signal: AbortSignal) {
    this.subscriptions++;
    const stopped = new Promise<'end'>((resolve) => signal.addEventListener('abort', () => resolve('end')));
    for (;;) {
      const told = new Promise<Report>((resolve) => {
        this.reports = resolve;
      });
      const next = await Promise.race([told, stopped]);
      if (next === 'end') return;
      if (next instanceof Error) throw next;
      yield next.hint;
    }
  }

  async close(): Promise<void> {}

  /** @returns what the node would report */
  pay(reference: string): Report {
    const payment = { reference, id: reference, units: 1_000_000n, confirmations: 'final', receivedAt: time.now() };
    this.settled.set(reference, payment as BackendPayment);
    return { hint: reference };
  }

  async say(next: Report): Promise<void> {
    await time.pass(0);
    this.reports?.(next);
    await time.pass(0);
  }
}

let node: Node;
let invoices: AwaitedTopup[];
let recorded: string[];
let alarms: string[];
let stop: AbortController;
let watching: Promise<void>;

/** An invoice, and as long as nobody has paid it, an open one. */
function invoice(reference: string, expiresIn = 15 * MINUTE, backend = 'lnd'): void {
  const expiresAt = time.in(expiresIn);
  invoices.push({ topupId: `topup-of-${reference}`, coin: 'BTC', backend, reference, expiresAt });
}

const remembers: TopupPayments['record'] = async ({ topupId }, { reference }) => {
  recorded.push(`${reference} of ${topupId}`);
  invoices = invoices.filter((each) => each.reference !== reference);
};

function watch({ record = remembers, open = async () => invoices as readonly AwaitedTopup[] } = {}): void {
  const payments = { record } as unknown as TopupPayments;
  const byReference = async (backend: string, reference: string) =>
    invoices.find((each) => each.backend === backend && each.reference === reference);
  const alarm = (problem: string) => void alarms.push(problem);
  const backends = new PaymentBackends([node]);
  watching = watchInvoices({ backends, payments, clock: time, open, byReference, alarm }, stop.signal);
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
  test('that the node hints at is looked at and recorded at once', async () => {
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

  test('that the node only claims is none', async () => {
    invoice('aa');
    watch();
    await node.say({ hint: 'aa' });
    expect([recorded, alarms]).toEqual([[], []]);
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
    const record: typeof remembers = async (topup, payment) => {
      if (payment.reference === 'aa' && failures-- > 0) throw new Error('no rate');
      return remembers(topup, payment);
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
    expect(alarms).toEqual(['lnd no longer reports payments; asking it again']);
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
    expect(alarms).toContain('open top-ups could not be asked after at lnd; trying again');
    node.broken.clear();
    node.pay('bad');
    await time.pass(4 * SECOND);
    expect(recorded).toContain('bad of topup-of-bad');
  });

  test('nothing that another back end is to be asked', async () => {
    invoice('aa', 15 * MINUTE, 'another');
    watch();
    await time.pass(MINUTE);
    expect([node.askedAfter, alarms]).toEqual([[], []]);
  });

  test('several at once where it takes several', async () => {
    Object.assign(node, { batch: 2 });
    const looks: (readonly string[])[] = [];
    const look = node.look.bind(node);
    node.look = (references) => {
      looks.push(references);
      return look(references);
    };
    for (const reference of ['aa', 'bb', 'cc']) invoice(reference);
    node.pay('bb');
    watch();
    await time.pass(SECOND);
    expect(looks).toEqual([['aa', 'bb'], ['cc']]);
    expect(recorded).toEqual(['bb of topup-of-bb']);
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
    const look = node.look.bind(node);
    node.look = async (references) => {
      stop.abort();
      return look(references);
    };
    watch();
    await watching;
    expect(node.askedAfter).toEqual(['aa']);
  });
});
