/** How each role starts while its database is late, as after a restart of all hosts. */
import 'reflect-metadata';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createLog, type Log, readSettings, type Settings } from '#foundation';
import { openContext, openRole, type ProcessRole } from '#modules';
import { createTestDatabase, DelayedDatabase, REJECTIONS, shortenDelays, type TestDatabase } from '#testing';
import { openGateway } from '../../gateway/src/gateway.ts';
import { ProjectorModule } from '../../projector/src/projector.module.ts';
import { SagasModule } from '../../sagas/src/sagas.module.ts';

const ROLES: Readonly<Record<string, (role: ProcessRole) => Promise<object>>> = {
  gateway: (role) => openGateway(role),
  projector: (role) => openContext(role, [ProjectorModule]),
  sagas: (role) => openContext(role, [SagasModule]),
};

let dataDir: string;
let database: TestDatabase;
let late: DelayedDatabase;
let restoreDelays: () => void;
beforeAll(async () => {
  restoreDelays = shortenDelays(20);
  dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-starts-'));
});
beforeEach(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  restoreDelays();
  await rm(dataDir, { recursive: true });
});

const readTestSettings = (databaseUrl: string): Settings =>
  readSettings({ PORT: '0', DATA_DIR: dataDir, DATABASE_URL: databaseUrl });

/** A log, with the sentences about what a start waits for. */
function createWaitLog() {
  const sentences: string[] = [];
  const { promise: waiting, resolve } = Promise.withResolvers<void>();
  const warn = (_: object, sentence: string) => {
    if (!sentence.startsWith('the start is waiting for ')) return;
    sentences.push(sentence);
    resolve();
  };
  return {
    log: { ...createLog('silent'), warn, info: () => {}, error: () => {} } as unknown as Log,
    sentences,
    waiting,
  };
}

describe.each(Object.entries(ROLES))('a %s', (name, start) => {
  test('starts without a warning of Nest', async () => {
    const contexts: unknown[] = [];
    const warn = ({ context }: { readonly context?: unknown }) => void contexts.push(context);
    const log = { ...createLog('silent'), warn, error: warn } as unknown as Log;
    const role = await openRole(name, readTestSettings(database.url), log, start);
    await role.close();
    expect(contexts.filter((context) => context !== undefined)).toEqual([]);
    await database.drop();
  });

  test('starts although PostgreSQL rejects every third connection, because it has too many', async () => {
    late = await DelayedDatabase.open(database.url, (connection) => connection % 3 === 0, REJECTIONS.full);
    const { log, sentences } = createWaitLog();
    const role = await openRole(name, readTestSettings(late.url), log, start);
    await role.close();
    expect(sentences.join()).toContain('max_connections');
    late.close();
    await database.drop();
  });

  test('that starts before PostgreSQL listens says so, and is ready after PostgreSQL listens', async () => {
    late = await DelayedDatabase.open(database.url, () => false);
    late.close();
    const { log, sentences, waiting } = createWaitLog();
    const starting = openRole(name, readTestSettings(late.url), log, start);
    await Promise.race([waiting, starting]);
    await late.listen();
    await (await starting).close();
    expect(sentences[0]).toMatch(/^the start is waiting for the database in DATABASE_URL \(connect ECONNREFUSED /);
    late.close();
    await database.drop();
  });
});
