import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from '@jest/globals';
import type {
  ExistingClaim,
  FileName,
  FileStore,
  IdempotencyClaim,
  IdempotencyStore,
  SavedHttpResponse,
} from '#application';

export interface IdempotencyStoreOptions {
  /** How long a confirmed claim is valid without its gateway. */
  readonly confirmedLeaseMs: number;
  /** The images of responses. */
  readonly files: Pick<FileStore, 'find'>;
}

export interface OpenedIdempotencyStore {
  readonly store: IdempotencyStore & { removeExpired(): Promise<void> };
  /** Lets this much time pass for all claims of the store. */
  passTime(milliseconds: number): Promise<void>;
}

const RESPONSE: SavedHttpResponse = {
  status: 200,
  headers: { 'content-type': 'audio/mpeg' },
  body: Buffer.from([0, 10, 255, 10]),
};
const NEW_CLAIM = { isRunning: true, hasHold: false, isLost: false, sealedResponse: null };

const CONFIRMED_LEASE_MS = 60_000;
const EXISTING_FILES = 'existing';

/** The files of `EXISTING_FILES`: the bytes of each are its number. */
const files: Pick<FileStore, 'find'> = {
  find: async ({ id, n }: FileName) =>
    id === EXISTING_FILES
      ? {
          mediaType: 'image/png',
          size: 1,
          read: async function* () {
            yield Buffer.from([n]);
          },
        }
      : undefined,
};

const HOUR = 3_600_000;

function createClaim(overrides: Partial<IdempotencyClaim> = {}): IdempotencyClaim {
  const [payer, requestId] = [`account-${randomUUID()}`, randomUUID()];
  return { payer, key: 'k', request: 'r', requestId, revision: 7, owner: requestId, ...overrides };
}

const isTrue = (value: boolean) => value;

/**
 * Tests that every adapter of the `IdempotencyStore` port must pass. `open` returns a store, which may contain claims
 * of other payers.
 */
export function idempotencyStoreContract(
  name: string,
  open: (options: IdempotencyStoreOptions) => Promise<OpenedIdempotencyStore>,
): void {
  let store: OpenedIdempotencyStore['store'];
  let passTime: OpenedIdempotencyStore['passTime'];
  const openStore = async () => {
    ({ store, passTime } = await open({ confirmedLeaseMs: CONFIRMED_LEASE_MS, files }));
  };

  async function claimKey(overrides: Partial<IdempotencyClaim> = {}): Promise<IdempotencyClaim> {
    const claim = createClaim(overrides);
    expect(await store.claim(claim)).toBeDefined();
    return claim;
  }

  async function findClaim(claim: IdempotencyClaim): Promise<ExistingClaim> {
    const existing = await store.find(claim);
    if (!existing) throw new Error('the claim was not found');
    return existing;
  }

  async function takeOver(claim: IdempotencyClaim, next: IdempotencyClaim): Promise<boolean> {
    await store.end(claim, 'unknown');
    return store.takeOver(await findClaim(claim), next);
  }

  const isRunning = async (claim: IdempotencyClaim) => (await findClaim(claim)).isRunning;

  /** Expects the lease of a claim to end at this time, or up to 30 % earlier: the time of a real store also passes. */
  async function expectLease(claim: IdempotencyClaim, milliseconds: number): Promise<void> {
    await passTime(0.7 * milliseconds);
    expect(await isRunning(claim)).toBe(true);
    await passTime(0.3 * milliseconds);
    expect(await isRunning(claim)).toBe(false);
  }

  describe(`${name}: an idempotency key`, () => {
    beforeEach(openStore);

    test('has a short lease until it is confirmed', async () => {
      await expectLease(await claimKey(), 10_000);
    });

    test('has a lease as long as a hold after it was confirmed', async () => {
      const claim = await claimKey();
      expect(await store.confirm(claim)).toBe(true);
      expect(await store.find(claim)).toMatchObject({ isRunning: true, hasHold: true });
      await expectLease(claim, CONFIRMED_LEASE_MS);
    });

    test('can be confirmed after its lease, unless it was taken over', async () => {
      const claim = await claimKey();
      await passTime(10_000);
      expect(await store.confirm(claim)).toBe(true);
      expect(await isRunning(claim)).toBe(true);
    });

    test('stays with a request that waits for money and renews its claim, unless it was taken over', async () => {
      const claim = await claimKey();
      await store.end(claim, 'unknown');
      expect(await isRunning(claim)).toBe(false);
      expect(await store.renew(claim)).toBe(true);
      await passTime(5_000);
      expect(await store.renew(claim)).toBe(true);
      await expectLease(claim, 10_000);
      expect(await takeOver(claim, createClaim({ payer: claim.payer }))).toBe(true);
      expect(await store.renew(claim)).toBe(false);
    });

    test('is not renewed after it was confirmed, because that would shorten its lease', async () => {
      const claim = await claimKey();
      await store.confirm(claim);
      expect(await store.renew(claim)).toBe(false);
      await expectLease(claim, CONFIRMED_LEASE_MS);
    });

    test('is claimed by exactly one of many concurrent requests', async () => {
      const { payer } = createClaim();
      const claims = await Promise.all(Array.from({ length: 50 }, () => store.claim(createClaim({ payer }))));
      expect(claims.filter((stored) => stored !== undefined)).toHaveLength(1);
    });

    test('can be claimed by several payers, and another key by the same payer', async () => {
      const { payer } = await claimKey();
      await claimKey();
      await claimKey({ payer, key: 'another' });
      expect(await store.find(createClaim({ payer, key: 'unused' }))).toBeUndefined();
      expect(await store.find(createClaim())).toBeUndefined();
    });

    test('is taken over by exactly one of many concurrent requests', async () => {
      const claim = await claimKey();
      await store.end(claim, 'unknown');
      const existing = await findClaim(claim);
      expect(existing).toEqual({ ...claim, ...NEW_CLAIM, isRunning: false });
      const attempts = Array.from({ length: 50 }, () => store.takeOver(existing, { ...claim, owner: randomUUID() }));
      expect((await Promise.all(attempts)).filter(isTrue)).toHaveLength(1);
      expect(await isRunning(claim)).toBe(true);
    });

    test('is not taken over during its lease', async () => {
      const claim = await claimKey();
      const next = createClaim({ payer: claim.payer });
      expect(await store.takeOver(await findClaim(claim), next)).toBe(false);
      await passTime(10_000);
      const existing = await findClaim(claim);
      await store.renew(claim);
      expect(await store.takeOver(existing, next)).toBe(false);
      expect(await store.find(claim)).toEqual({ ...claim, ...NEW_CLAIM });
    });

    test('is not taken over by a request that read it before it was confirmed', async () => {
      const claim = await claimKey();
      await store.end(claim, 'unknown');
      const existing = await findClaim(claim);
      await store.confirm(claim);
      expect(await store.takeOver(existing, createClaim({ payer: claim.payer }))).toBe(false);
      await store.end(claim, 'unknown');
      expect(await store.takeOver(existing, createClaim({ payer: claim.payer }))).toBe(false);
      expect(await store.find(claim)).toMatchObject({ owner: claim.owner, hasHold: true });
    });

    test.each([RESPONSE, 'lost'] as const)(
      'is not taken over by a request that read it before it ended: %#',
      async (outcome) => {
        const claim = await claimKey();
        await store.end(claim, 'unknown');
        const existing = await findClaim(claim);
        await store.end(claim, outcome);
        expect(await store.takeOver(existing, createClaim({ payer: claim.payer }))).toBe(false);
        expect(await store.find(claim)).toMatchObject({ owner: claim.owner });
      },
    );

    test('has the state of a new claim after it was taken over', async () => {
      const claim = await claimKey();
      await store.confirm(claim);
      const next = createClaim({ payer: claim.payer, revision: 9 });
      expect(await takeOver(claim, next)).toBe(true);
      expect(await store.find(claim)).toEqual({ ...next, ...NEW_CLAIM });
      await expectLease(claim, 10_000);
    });

    test('has the earlier request and lifetime after it was taken over', async () => {
      const claim = await claimKey({ lifetimeSeconds: 3_600 });
      const next = createClaim({ payer: claim.payer, request: 'another' });
      expect(await takeOver(claim, next)).toBe(true);
      expect(await store.find(claim)).toEqual({ ...next, ...NEW_CLAIM, request: 'r' });
      await passTime(HOUR);
      expect(await store.claim(createClaim({ payer: claim.payer }))).toBeDefined();
    });

    test('cannot be changed by an owner that has lost it', async () => {
      const claim = await claimKey();
      const next = { ...claim, owner: randomUUID() };
      await takeOver(claim, next);
      const changes = [
        store.confirm(claim),
        store.renew(claim),
        store.end(claim, RESPONSE),
        store.end(claim, RESPONSE, 0),
        store.end(claim, 'lost'),
        store.end(claim, 'unknown'),
        store.end(claim, 'unpaid'),
        store.end(claim, 'delivered'),
      ];
      expect((await Promise.all(changes)).filter(isTrue)).toEqual([]);
      expect(await store.find(claim)).toEqual({ ...next, ...NEW_CLAIM });
      expect(await store.claim(createClaim({ payer: claim.payer }))).toBeUndefined();
    });

    test('can be claimed like a new key after an unpaid request or after its expiry', async () => {
      const [unpaid, expired] = [await claimKey(), await claimKey({ lifetimeSeconds: 3_600 })];
      expect(await store.end(unpaid, 'unpaid')).toBe(true);
      expect(await store.find(unpaid)).toBeUndefined();
      await store.confirm(expired);
      await store.end(expired, RESPONSE);
      expect(await store.end(expired, 'lost')).toBe(true);
      await passTime(HOUR);
      for (const { payer } of [unpaid, expired]) {
        const another = await claimKey({ payer, request: 'another' });
        expect(await store.find(another)).toEqual({ ...another, ...NEW_CLAIM });
      }
    });

    test('expires after a day, if no other lifetime is given', async () => {
      const { payer } = await claimKey();
      await passTime(23 * HOUR);
      expect(await store.claim(createClaim({ payer }))).toBeUndefined();
      await passTime(HOUR);
      await claimKey({ payer });
    });

    test('is free after the delivery of its response, which is found until another request has the key', async () => {
      const claim = await claimKey();
      await store.end(claim, RESPONSE);
      expect(await store.end(claim, 'delivered')).toBe(true);
      expect((await findClaim(claim)).sealedResponse).not.toBeNull();
      const another = await claimKey({ payer: claim.payer });
      expect(await store.find(claim)).toEqual({ ...another, ...NEW_CLAIM });
    });

    test('is removed only when it has expired', async () => {
      const [delivered, short, long] = [await claimKey(), await claimKey({ lifetimeSeconds: 3_600 }), await claimKey()];
      await store.end(delivered, 'delivered');
      await store.removeExpired();
      expect(await store.find(delivered)).toBeUndefined();
      expect(await store.find(short)).toBeDefined();
      await passTime(HOUR);
      await store.removeExpired();
      expect(await store.find(short)).toBeUndefined();
      expect(await store.find(long)).toBeDefined();
    });
  });

  describe(`${name}: a saved response`, () => {
    beforeEach(openStore);

    test('is returned byte for byte', async () => {
      const claim = await claimKey();
      expect(await store.end(claim, { ...RESPONSE, isIncomplete: true })).toBe(true);
      const { sealedResponse, isLost } = await findClaim(claim);
      expect(isLost).toBe(false);
      expect(await store.open(sealedResponse as Buffer)).toEqual({ ...RESPONSE, isIncomplete: true });
    });

    test('that was saved without its images has them again while their files exist', async () => {
      const body = Buffer.from('{"b64_json":"","prompt":"\\"b64_json\\":\\"\\""},{"b64_json":""}');
      const saveAndOpen = async (id: string) => {
        const claim = await claimKey();
        await store.end(claim, { ...RESPONSE, body, images: [1, 2].map((n) => ({ id, n })) });
        return store.open((await findClaim(claim)).sealedResponse as Buffer);
      };
      const restored = await saveAndOpen(EXISTING_FILES);
      expect(restored?.body.toString()).toBe(
        '{"b64_json":"AQ==","prompt":"\\"b64_json\\":\\"\\""},{"b64_json":"Ag=="}',
      );
      expect(Object.keys(restored ?? {})).not.toContain('images');
      expect(await saveAndOpen('missing')).toBeUndefined();
    });

    test('counts towards the stored bytes of its payer until it is replaced or removed', async () => {
      const claims = [await claimKey({ lifetimeSeconds: 3_600 }), await claimKey({ lifetimeSeconds: 3_600 })];
      for (const claim of claims) await store.end(claim, RESPONSE);
      const [replaced, removed] = claims as [IdempotencyClaim, IdempotencyClaim];
      const size = (await findClaim(replaced)).sealedResponse?.length;
      expect(await store.claim(createClaim({ payer: replaced.payer, key: 'another' }))).toBe(size);
      await passTime(HOUR);
      // The claim that reclaims it still counts it.
      expect(await store.claim(createClaim({ payer: replaced.payer }))).toBe(size);
      await store.removeExpired();
      for (const { payer } of [replaced, removed])
        expect(await store.claim(createClaim({ payer, key: 'third' }))).toBe(0);
    });

    test('is saved only within the limit of its payer, also with concurrent requests; otherwise it is lost', async () => {
      const first = await claimKey();
      await store.end(first, RESPONSE);
      const size = (await findClaim(first)).sealedResponse?.length ?? 0;
      const { payer } = createClaim();
      const claims = Array.from({ length: 8 }, (_, i) => createClaim({ payer, key: `k${i}` }));
      for (const claim of claims) await store.claim(claim);
      const saved = await Promise.all(claims.map((claim) => store.end(claim, RESPONSE, 3 * size)));
      expect(saved.filter(isTrue)).toHaveLength(3);
      const existing = await Promise.all(claims.map(findClaim));
      expect(existing.map(({ isLost }) => isLost)).toEqual(saved.map((isSaved) => !isSaved));
      expect(existing.map(({ sealedResponse }) => sealedResponse !== null)).toEqual(saved);
      expect(await store.claim(createClaim({ payer, key: 'next' }))).toBe(3 * size);
    });
  });
}
