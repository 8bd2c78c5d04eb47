/** Tests sweeps and polls with the real stores, projector and workflows, and a fake Lightning node. */
import timers from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { Clock, Streams } from '#application';
import { createIssuedChallenge, extendDelay, replaceDelays, shiftClock, TEST_CAUSE, TestWorld } from '#testing';

/** Factor by which delays between polls and heartbeats are shortened. */
const FASTER = 20;
/** Delays that are longer than this are those between sweeps. They are shortened to 0.3 seconds. */
const SWEEP_MS = 60_000;
const DAY_MS = 86_400_000;
/** The latency of responses that are generated until the test ends them. */
const LATENCY_MS = 40_000;
const pause = timers.setTimeout;
const asBefore = replaceDelays((milliseconds, ...more) =>
  pause(milliseconds > SWEEP_MS ? SWEEP_MS / 200 : milliseconds / FASTER, ...more),
);

let world: TestWorld;
let database: pg.Pool;
beforeAll(async () => {
  world = await TestWorld.openWithSagas({ UNCLAIMED_AFTER_DAYS: '8' });
  database = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
});
afterAll(async () => {
  await database.end();
  await world.close();
  asBefore();
});

/** Makes the row of a process expire, and all later heartbeats of the process fail. */
async function cutOff(id: string): Promise<void> {
  await database.query(`begin;
    update processes set ends_at = now() where id = '${id}';
    alter table processes add constraint cut_off check (id <> '${id}') not valid;
    commit`);
}

test('a sweep ends the hold of a stale gateway before the hold expires, but no hold of another process', async () => {
  const other = await world.startGateway();
  const account = await world.createAccount(1.05);
  const generation = extendDelay(LATENCY_MS);
  const slow = `tokens=8 latency=${LATENCY_MS}`;
  const requests = [
    world.sendChat(account, slow),
    world.sendChat(account, slow, {}, other.api),
    world.sendChat(account, `${slow} fault=malformed`, {}, other.api),
  ] as const;
  const holds = async () =>
    (await world.listEvents(account)).flatMap(({ type, data }) => (type === 'FundsHeld' ? [data] : []));
  await world.waitUntil(async () => (await holds()).length === 3);
  const [own = '', lost = ''] = [...new Set((await holds()).map(({ owner = '' }) => owner))].toSorted().reverse();
  expect([own, lost]).toEqual([expect.stringMatching(/^world-/), expect.stringMatching(/^gateway-/)]);

  await cutOff(lost);
  const ended = async () =>
    (await world.listEvents(account)).flatMap(({ type, data }) => (type === 'HoldExpired' ? [data.holdId] : []));
  // The two were placed at different times, so two sweeps may end them.
  await world.waitUntil(async () => (await ended()).length >= 2);
  const ofLost = (await holds()).filter(({ owner }) => owner === lost).map(({ holdId }) => holdId);
  expect((await ended()).toSorted()).toEqual(ofLost.toSorted());

  // The operator absorbs the charge of the late response, and the cost of the response that failed late.
  generation.end();
  const [answer, late, failed] = await Promise.all(requests);
  expect([answer.status, late.status, failed.status]).toEqual([200, 200, 502]);
  const after = (await world.listEvents(account)).slice(-3).map(({ type }) => type);
  expect(after.toSorted()).toEqual(['ChargeAbsorbed', 'ChargeAbsorbed', 'HoldSettled']);
  expect(await ended()).toHaveLength(2);

  await database.query('alter table processes drop constraint cut_off');
  await world.waitUntil(async () => {
    await world.sendChat(account, '', {}, other.api);
    return (await world.listEvents(account)).at(-1)?.type === 'HoldSettled';
  });
  await other.close();
});

const ends = async (id: string) =>
  (await world.listEvents()).flatMap((fact) => (fact.stream === `challenge-${id}` ? [fact] : [])).slice(1);

test('a sweep forfeits a pay-per-request payment UNCLAIMED_AFTER_DAYS after it can no longer be used', async () => {
  const { challenges } = world.getService(Streams);
  const ids = [7, 10].map((days) => ({
    id: crypto.randomUUID(),
    ago: new Date(Date.now() - days * DAY_MS).toISOString(),
  }));
  for (const { id, ago } of ids) {
    const data = createIssuedChallenge({ reference: id, expiresAt: ago, usableUntil: ago, at: ago });
    await challenges.run(id, { type: 'IssueChallenge', data }, TEST_CAUSE);
    const units = BigInt(data.units);
    await challenges.run(id, { type: 'RecordChallengePayment', data: { units, at: ago } }, TEST_CAUSE);
  }
  const [young = '', old = ''] = ids.map(({ id }) => id);
  await world.waitUntil(async () => (await ends(old)).length > 1);
  const types = async (id: string) => (await ends(id)).map(({ type }) => type);
  expect([await types(young), await types(old)]).toEqual([['ChallengePaid'], ['ChallengePaid', 'ChallengeForfeited']]);
});

test('the challenge workflow finds a payment without a presented proof once its invoice has expired', async () => {
  const body = { model: 'google/nano-banana-2', prompt: 'A coin', provider: { only: ['fal'] } };
  const asked = await world.send('POST', '/v1/images/generations', { body });
  expect(asked.status).toBe(402);
  await world.payInvoice(asked.body.invoice);
  const issued = (await world.listEvents()).findLast(({ type }) => type === 'ChallengeIssued');
  const id = issued?.stream.slice('challenge-'.length) ?? '';
  await world.waitUntil(async () => {
    const { rows } = await database.query(`select from es.due where workflow = 'challenges' and id = '${id}'`);
    return rows.length > 0;
  });
  const row = async () =>
    (await database.query(`select state, available from books.challenges where challenge_id = '${id}'`)).rows;
  expect([await ends(id), await row()]).toEqual([[], []]);

  const setBack = shiftClock(world.getService(Clock), 16 * 60_000);
  await world.waitUntil(async () => (await row()).length > 0);
  setBack();
  const paid = await ends(id);
  expect(paid).toMatchObject([{ type: 'ChallengePaid', data: { by: 'backend' } }]);
  expect(await row()).toEqual([{ state: 'paid', available: paid[0]?.type === 'ChallengePaid' && paid[0].data.price }]);
});
