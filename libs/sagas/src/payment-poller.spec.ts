import { beforeEach, describe, expect, test } from '@jest/globals';
import { type PaymentBackend, UpstreamError } from '#application';
import { FakeClock } from '../../testing/src/fake-clock.ts';
import { PaymentPoller } from './payment-poller.ts';

const AWAY = new UpstreamError('upstream_unavailable', 'The payment backend is unavailable');

const WRONG = new UpstreamError('upstream_error', 'The response of the payment backend is implausible');

let time: FakeClock;
let asked: { readonly at: number; readonly references: readonly string[] }[];
let fails: UpstreamError | undefined;
let over: AbortController;

beforeEach(() => {
  time = new FakeClock('2026-11-20T12:00:00.000Z');
  [asked, fails, over] = [[], undefined, new AbortController()];
});

/** @param perSecond maximum requests per second @param batch maximum references per request */
function open(perSecond: number, batch = 1): PaymentPoller {
  const look = async (references: readonly string[]) => {
    asked.push({ at: time.nowMs(), references });
    if (fails) throw fails;
    if (references.includes('wrong')) throw WRONG;
    return references.map((reference) => {
      const receivedAt = time.now();
      return { reference, id: `paid ${reference}`, units: 1n, confirmations: 'final' as const, receivedAt };
    });
  };
  const sleep = (milliseconds: number) => time.delay(milliseconds).then(() => {});
  return new PaymentPoller(
    { maxBatchSize: batch, fetchPayments: look } as unknown as PaymentBackend,
    perSecond,
    { sleep },
    over.signal,
  );
}

const many = (n: number, name = 'r') => Array.from({ length: n }, (_, i) => `${name}${i}`);

describe('a payment poller', () => {
  test('resolves all polls, and exceeds the rate limit in no second by more than its 16 slots', async () => {
    const looks = open(50);
    const answers = Promise.all(many(200).map((each) => looks.poll(each, false)));
    await time.advance(5_000);
    expect((await answers).map(([payment]) => payment?.id)).toEqual(many(200).map((each) => `paid ${each}`));
    for (const { at } of asked) {
      const inTheSecond = asked.filter((each) => each.at >= at && each.at < at + 1_000);
      expect(inTheSecond.length).toBeLessThanOrEqual(50 + 16);
    }
  });

  test('polls an urgent reference before the regular ones that are waiting', async () => {
    const looks = open(10);
    for (const each of many(100)) void looks.poll(each, false);
    await time.advance(1_000);
    void looks.poll('paid', true);
    await time.advance(1_000);
    const place = asked.findIndex(({ references }) => references[0] === 'paid');
    expect(place).toBeGreaterThanOrEqual(0);
    expect(place).toBeLessThan(30);
  });

  test('polls a waiting reference before the others once it has become urgent', async () => {
    const poller = open(10);
    for (const reference of many(100)) void poller.poll(reference, false);
    await time.advance(1_000);
    poller.expedite('r99');
    poller.expedite('r0'); // was polled already
    poller.expedite('unknown');
    await time.advance(1_000);
    const references = asked.map((each) => each.references[0]);
    expect(references.indexOf('r99')).toBeGreaterThanOrEqual(0);
    expect(references.indexOf('r99')).toBeLessThan(30);
    expect(new Set(references).size).toBe(references.length);
  });

  test('combines polls of the same tick into requests of the maximum batch size', async () => {
    const looks = open(10, 3);
    for (const each of many(5)) void looks.poll(each, false);
    void looks.poll('first', true);
    await time.advance(0);
    expect(asked.map(({ references }) => references)).toEqual([
      ['first', 'r0', 'r1'],
      ['r2', 'r3', 'r4'],
    ]);
  });

  test('rejects queued and new polls during a back-off, and polls again after it', async () => {
    const looks = open(10);
    fails = AWAY;
    const waiting = many(50).map((each) => looks.poll(each, false));
    await Promise.all([time.advance(0), ...waiting.map((each) => expect(each).rejects.toBe(AWAY))]);
    expect(asked.length).toBe(16);
    await expect(looks.poll('r', true)).rejects.toBe(AWAY);
    expect(asked.length).toBe(16);
    fails = undefined;
    await time.advance(2_000);
    await expect(looks.poll('r', true)).resolves.toHaveLength(1);
  });

  test('polls each reference of a batch alone if the response is implausible', async () => {
    const looks = open(8, 4);
    const [wrong, ...right] = ['wrong', ...many(3)].map((each) => looks.poll(each, false)) as [Promise<unknown>];
    const failed = expect(wrong).rejects.toBe(WRONG);
    await time.advance(0);
    const later = looks.poll('later', false);
    await time.advance(10_000);
    expect(await Promise.all([...right, later])).toHaveLength(4);
    await failed;
    expect(asked.map(({ references }) => references.length)).toEqual([4, 1, 1, 1, 1, 1]);
    for (const { at } of asked)
      expect(asked.filter((each) => each.at >= at && each.at < at + 1_000).length).toBeLessThanOrEqual(8 + 16);
  });

  test.each([
    ['times out', new UpstreamError('timeout', 'too long')],
    ['returns an error status', new UpstreamError('upstream_error', 'status 500', { status: 500 })],
  ])('does not poll each reference alone if the backend %s', async (_, failure) => {
    fails = failure;
    const looks = open(8, 4);
    const failed = many(4).map((each) => expect(looks.poll(each, false)).rejects.toBe(failure));
    await time.advance(10_000);
    await Promise.all(failed);
    expect(asked).toHaveLength(1);
  });

  test('rejects queued and new polls once the lease has ended', async () => {
    const looks = open(1);
    const waiting = many(20).map((each) => looks.poll(each, false));
    const given = Promise.allSettled(waiting);
    await time.advance(0);
    over.abort(new Error('the lease has ended'));
    expect((await given).filter(({ status }) => status === 'rejected')).toHaveLength(4);
    await expect(looks.poll('r', true)).rejects.toThrow('the lease has ended');
  });
});
