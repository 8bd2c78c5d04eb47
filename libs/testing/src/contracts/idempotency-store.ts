import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { IdempotencyClaim, IdempotencyStore } from '#application';

const RESPONSE = { status: 200, headers: { 'content-type': 'audio/mpeg' }, body: Buffer.from([0, 10, 255, 10]) };

/** A store under test. The lease of a confirmed claim is one minute. */
export interface IdempotencyStoreSubject {
  readonly store: IdempotencyStore;
  /** Returns the seconds until the lease of a claim ends; not positive if it has ended. */
  getLeaseSeconds(claim: IdempotencyClaim): Promise<number>;
  /** Lets a claim expire. */
  expire(claim: IdempotencyClaim): Promise<unknown>;
  close(): Promise<void>;
}

/** Returns the claim of a new request of a new account. */
function createClaim(overrides: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  const [payer, requestId] = [`account-${randomUUID()}`, randomUUID()];
  return { payer, key: 'k', request: 'r', requestId, revision: 7, owner: requestId, ...overrides };
}

/** Tests that every adapter of the `IdempotencyStore` port must pass. */
export function idempotencyStoreContract(name: string, open: () => Promise<IdempotencyStoreSubject>): void {
  describe(`${name}: an idempotency key`, () => {
    let subject: IdempotencyStoreSubject;
    beforeAll(async () => {
      subject = await open();
    });
    afterAll(() => subject.close());

    async function claim(): Promise<IdempotencyClaim> {
      const created = createClaim();
      await subject.store.claim(created);
      return created;
    }

    async function takeOver(ended: IdempotencyClaim, successor: IdempotencyClaim): Promise<boolean> {
      await subject.store.end(ended, 'unknown');
      const earlier = await subject.store.find(ended);
      return earlier !== undefined && subject.store.takeOver(earlier, successor);
    }

    test('stays with a request that waits for money and renews its claim, unless it was taken over', async () => {
      const running = await claim();
      await subject.store.end(running, 'unknown');
      expect(await subject.getLeaseSeconds(running)).toBeLessThanOrEqual(0);
      expect(await subject.store.renew(running)).toBe(true);
      expect(await subject.getLeaseSeconds(running)).toBeGreaterThan(5);
      const other = createClaim({ payer: running.payer });
      expect(await takeOver(running, other)).toBe(true);
      expect(await subject.store.renew(running)).toBe(false);
    });

    test('is not renewed after it was confirmed, because that would shorten its lease', async () => {
      const running = await claim();
      await subject.store.confirm(running);
      expect(await subject.store.renew(running)).toBe(false);
      expect(await subject.getLeaseSeconds(running)).toBeGreaterThan(50);
    });

    test('is claimed by exactly one of many concurrent requests', async () => {
      const { payer } = createClaim();
      const claims = await Promise.all(Array.from({ length: 50 }, () => subject.store.claim(createClaim({ payer }))));
      expect(claims.filter((stored) => stored !== undefined)).toHaveLength(1);
    });

    test('is taken over by exactly one of many concurrent requests', async () => {
      const ended = await claim();
      await subject.store.end(ended, 'unknown');
      const earlier = await subject.store.find(ended);
      if (!earlier) throw new Error('the claim was not found');
      expect(earlier).toEqual({ ...ended, isRunning: false, hasHold: false, isLost: false, sealedResponse: null });
      const successors = Array.from({ length: 50 }, () =>
        subject.store.takeOver(earlier, { ...ended, owner: randomUUID() }),
      );
      expect((await Promise.all(successors)).filter((isTaken) => isTaken)).toHaveLength(1);
      expect(await subject.store.find(ended)).toMatchObject({ isRunning: true });
    });

    test('cannot be changed by an owner that has lost it', async () => {
      const ended = await claim();
      const successor = { ...ended, owner: randomUUID() };
      await takeOver(ended, successor);
      const changes = [
        subject.store.confirm(ended),
        subject.store.end(ended, RESPONSE),
        subject.store.end(ended, 'lost'),
        subject.store.end(ended, 'unknown'),
        subject.store.end(ended, 'unpaid'),
      ];
      expect(await Promise.all(changes)).toEqual([false, false, false, false, false]);
      expect(await subject.store.find(ended)).toMatchObject({
        owner: successor.owner,
        isRunning: true,
        isLost: false,
        sealedResponse: null,
      });
    });

    test('can be claimed like a new key after an unpaid request or after its expiry', async () => {
      const [unpaid, expired] = [await claim(), await claim()];
      await subject.store.end(unpaid, 'unpaid');
      await subject.store.end(expired, RESPONSE);
      await subject.store.end(expired, 'lost');
      await subject.expire(expired);
      for (const { payer } of [unpaid, expired]) {
        const another = createClaim({ payer, request: 'another' });
        expect(await subject.store.claim(another)).toBeDefined();
        expect(await subject.store.find(another)).toEqual({
          ...another,
          isRunning: true,
          hasHold: false,
          isLost: false,
          sealedResponse: null,
        });
      }
    });

    test('has a short lease until it is confirmed, and then one as long as a hold', async () => {
      const running = await claim();
      expect(await subject.getLeaseSeconds(running)).toBeLessThanOrEqual(10);
      expect(await subject.store.confirm(running)).toBe(true);
      expect(await subject.getLeaseSeconds(running)).toBeGreaterThan(50);
      expect(await subject.store.find(running)).toMatchObject({ isRunning: true, hasHold: true });
    });

    test('is not taken over by a request that read it before it was confirmed', async () => {
      const current = await claim();
      await subject.store.end(current, 'unknown');
      const earlier = await subject.store.find(current);
      if (!earlier) throw new Error('the claim was not found');
      await subject.store.confirm(current);
      expect(await subject.store.takeOver(earlier, createClaim({ payer: current.payer }))).toBe(false);
      await subject.store.end(current, 'unknown');
      expect(await subject.store.takeOver(earlier, createClaim({ payer: current.payer }))).toBe(false);
      expect(await subject.store.find(current)).toMatchObject({ owner: current.owner, hasHold: true });
    });

    test.each([RESPONSE, 'lost'] as const)(
      'is not taken over by a request that read it before it ended: %#',
      async (outcome) => {
        const current = await claim();
        await subject.store.end(current, 'unknown');
        const earlier = await subject.store.find(current);
        if (!earlier) throw new Error('the claim was not found');
        await subject.store.end(current, outcome);
        expect(await subject.store.takeOver(earlier, createClaim({ payer: current.payer }))).toBe(false);
        expect(await subject.store.find(current)).toMatchObject({ owner: current.owner });
      },
    );

    test('has the state of a new claim after it was taken over', async () => {
      const ended = await claim();
      await subject.store.confirm(ended);
      const successor = createClaim({ payer: ended.payer, revision: 9 });
      expect(await takeOver(ended, successor)).toBe(true);
      expect(await subject.store.find(ended)).toEqual({
        ...successor,
        isRunning: true,
        hasHold: false,
        isLost: false,
        sealedResponse: null,
      });
      expect(await subject.getLeaseSeconds(ended)).toBeLessThanOrEqual(10);
    });
    test('returns the response of the request that has ended, and only to repeats of that request', async () => {
      const running = await claim();
      expect(await subject.store.end(running, RESPONSE)).toBe(true);
      const { sealedResponse } = (await subject.store.find(running)) ?? {};
      expect(await subject.store.open(sealedResponse ?? Buffer.alloc(0))).toEqual(RESPONSE);
      expect(await subject.store.claim(createClaim({ payer: running.payer }))).toBeUndefined();
    });

    test('is free after its response was delivered, which those that wait for it still find', async () => {
      const running = await claim();
      await subject.store.end(running, RESPONSE);
      await subject.store.end(running, 'delivered');
      expect((await subject.store.find(running))?.sealedResponse).toBeTruthy();
      expect(await subject.store.claim(createClaim({ payer: running.payer }))).toBeDefined();
      expect((await subject.store.find(running))?.sealedResponse).toBeNull();
    });
  });
}
