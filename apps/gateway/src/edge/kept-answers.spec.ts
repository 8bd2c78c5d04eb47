import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Secrets } from '#application';
import { migrate } from '#infra';
import { createTestDatabase, type TestDatabase } from '#testing';
import { answerMigrations, type Claim, KeptAnswers } from './kept-answers.ts';

const ANSWER = { status: 200, headers: { 'content-type': 'audio/mpeg' }, body: Buffer.from([0, 10, 255, 10]) };

let database: TestDatabase;
let pool: pg.Pool;
let kept: KeptAnswers;
beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(database.url, answerMigrations);
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => {}); // the database may be dropped before the last connection is quite closed
  kept = new KeptAnswers(pool, new Secrets(randomBytes(32)), 60_000);
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const claimOf = (more: Partial<Claim> = {}): Claim => {
  const [accountId, requestId] = [randomUUID(), randomUUID()];
  return { accountId, key: 'k', request: 'r', requestId, revision: 7, owner: requestId, ...more };
};

async function claimed(): Promise<Claim> {
  const claim = claimOf();
  await kept.claim(claim);
  return claim;
}

const expire = ({ accountId }: Claim) =>
  pool.query('update gateway.answers set expires_at = now() where account_id = $1', [accountId]);

describe('a key', () => {
  test('is claimed by one of many at once', async () => {
    const { accountId } = claimOf();
    const claims = await Promise.all(Array.from({ length: 50 }, () => kept.claim(claimOf({ accountId }))));
    expect(claims.filter((mine) => mine)).toHaveLength(1);
  });

  test('is taken over by one of many at once', async () => {
    const dead = await claimed();
    await kept.giveUp(dead);
    const earlier = await kept.find(dead);
    if (!earlier) throw new Error('it was forgotten');
    expect(earlier).toEqual({ ...dead, running: false, lost: false, answer: null });
    const heirs = Array.from({ length: 50 }, () => kept.takeOver(earlier, { ...dead, owner: randomUUID() }));
    expect((await Promise.all(heirs)).filter((mine) => mine)).toHaveLength(1);
    expect(await kept.find(dead)).toMatchObject({ running: true });
  });

  test('is not changed any more by who has lost it', async () => {
    const dead = await claimed();
    const heir = { ...dead, owner: randomUUID() };
    await kept.takeOver({ ...dead, running: false, lost: false, answer: null }, heir);
    const late = [kept.keep(dead, ANSWER), kept.lose(dead), kept.giveUp(dead), kept.forget(dead)];
    expect(await Promise.all(late)).toEqual([false, false, false, false]);
    expect(await kept.find(dead)).toMatchObject({ owner: heir.owner, running: true, lost: false, answer: null });
  });

  test('that is forgotten, or has expired, is free, and nothing is left of what it was', async () => {
    const [forgotten, expired] = [await claimed(), await claimed()];
    await kept.forget(forgotten);
    await kept.keep(expired, ANSWER);
    await kept.lose(expired);
    await expire(expired);
    for (const { accountId } of [forgotten, expired]) {
      const anew = claimOf({ accountId, request: 'another' });
      expect(await kept.claim(anew)).toBe(true);
      expect(await kept.find(anew)).toEqual({ ...anew, running: true, lost: false, answer: null });
    }
  });

  test('is removed when it has expired, and not before', async () => {
    const [old, young] = [await claimed(), await claimed()];
    await expire(old);
    await kept.removeExpired();
    expect(await kept.find(old)).toBeUndefined();
    expect(await kept.find(young)).toBeDefined();
  });
});

describe('an answer', () => {
  test('comes back byte for byte, and only by the same master key', async () => {
    const claim = await claimed();
    await kept.keep(claim, ANSWER);
    const { answer } = (await kept.find(claim)) ?? {};
    if (!answer) throw new Error('it was not kept');
    expect(await kept.open(answer)).toEqual(ANSWER);
    const stranger = new KeptAnswers(pool, new Secrets(randomBytes(32)), 60_000);
    await expect(stranger.open(answer)).rejects.toThrow();
  });
});
