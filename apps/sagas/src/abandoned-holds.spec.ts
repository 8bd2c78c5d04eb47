/** What gateways hold while they live, and when they have died: with the stores, the projector and the sweep themselves. */
import timers from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { replacePauses, World } from '#testing';

/** Pauses between looks and heartbeats are that much shorter. */
const FASTER = 20;
const pause = timers.setTimeout;
const asBefore = replacePauses((milliseconds, ...more) => pause(milliseconds / FASTER, ...more));

let world: World;
let database: pg.Pool;
beforeAll(async () => {
  world = await World.open();
  database = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
});
afterAll(async () => {
  await database.end();
  await world.close();
  asBefore();
});

/** Its heartbeats fail from now on, and its row has run out. */
async function cutOff(id: string): Promise<void> {
  await database.query(`begin;
    update processes set ends_at = now() where id = '${id}';
    alter table processes add constraint cut_off check (id <> '${id}') not valid;
    commit`);
}

test('the holds of a gateway that seems dead are freed long before their time, and those of others stay', async () => {
  const other = await world.gateway();
  const account = await world.account(1.05);
  const slow = 'tokens=8 latency=40000';
  const asked = [world.chat(account, slow), world.chat(account, slow, {}, other.api)] as const;
  const holds = async () =>
    (await world.facts(account)).flatMap(({ type, data }) => (type === 'FundsHeld' ? [data] : []));
  await world.until(async () => (await holds()).length === 2);
  const [own = '', lost = ''] = (await holds())
    .map(({ owner = '' }) => owner)
    .toSorted()
    .reverse();
  expect([own, lost]).toEqual([expect.stringMatching(/^world-/), expect.stringMatching(/^gateway-/)]);

  await cutOff(lost);
  const ended = async () =>
    (await world.facts(account)).flatMap(({ type, data }) => (type === 'HoldExpired' ? [data.holdId] : []));
  await world.until(async () => (await ended()).length > 0);
  const ofLost = (await holds()).filter(({ owner }) => owner === lost).map(({ holdId }) => holdId);
  expect(await ended()).toEqual(ofLost);

  const [answer, late] = await Promise.all(asked);
  expect([answer.status, late.status]).toEqual([200, 200]);
  const after = (await world.facts(account)).slice(-2).map(({ type }) => type);
  expect(after.toSorted()).toEqual(['ChargeAbsorbed', 'HoldSettled']);
  expect(await ended()).toEqual(ofLost);

  await database.query('alter table processes drop constraint cut_off');
  await world.until(async () => {
    await world.chat(account, '', {}, other.api);
    return (await world.facts(account)).at(-1)?.type === 'HoldSettled';
  });
  await other.close();
});
