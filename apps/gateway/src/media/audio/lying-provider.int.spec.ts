/** A provider invoices the duration that it reports, so a plausible duration is recorded even if it is too long. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { HoldSettled } from '#domain';
import { createForm, type TestAccount, TestWorld } from '#testing';
import { respondWithJson, StubServer } from '../../../../../libs/testing/src/servers/stub-server.ts';

const vendor = new StubServer();
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open({ DEEPGRAM_BASE_URL: await vendor.listen() });
  account = await world.createAccount(10.5);
});
afterAll(async () => {
  await world.close();
  await vendor.close();
});

/** Transcribes one second of audio. @returns the data of the `HoldSettled` event */
async function settledAt(duration: unknown) {
  const results = { channels: [{ alternatives: [{ transcript: 'x', words: [] }] }] };
  vendor.handler = respondWithJson({ metadata: { duration }, results });
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const body = createForm({ file: '@file' });
  expect((await world.send('POST', '/v1/audio/transcriptions', { body, headers })).status).toBe(200);
  return ((await world.listEvents(account)).at(-1) as unknown as HoldSettled).data;
}

test('owes the provider for a longer reported duration, and charges the customer no more than is held', async () => {
  const { held, charged, charge } = await settledAt(60);
  expect(charged).toBe(held);
  expect(charge).toMatchObject({
    cost: '4300000000',
    items: [{ usage: { audioMillisecond: 60_000 }, estimated: false }],
  });
  expect(BigInt(charge.price)).toBeGreaterThan(BigInt(charged));
});

test.each([undefined, -1, 'long', 1e12])(
  'ignores the reported duration %s, and charges an estimate of less than 1.1 seconds for one second',
  async (duration) => {
    const { held, charged, charge } = await settledAt(duration);
    expect(BigInt(charged)).toBeLessThanOrEqual(BigInt(held));
    expect(charge.items[0]).toMatchObject({ usage: { audioMillisecond: expect.any(Number) }, estimated: true });
    expect(charge.items[0]?.usage.audioMillisecond).toBeLessThan(1_100);
  },
);
