import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readOrCreateMasterKeys } from '#foundation';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-master-key-'));
});
afterAll(() => rm(directory, { recursive: true }));

const inUse = () => Promise.reject(new Error('the installation uses a key'));
const settingsFor = (name: string) => ({ masterKeys: undefined, dataDir: path.join(directory, name) });

test('processes that start at the same time without a key get the same generated key', async () => {
  const settings = settingsFor('together');
  const rings = await Promise.all([1, 2, 3].map(() => readOrCreateMasterKeys(settings, async () => {})));
  expect(rings).toEqual([rings[0], rings[0], rings[0]]);
  expect(rings[0]?.[0]).toHaveLength(32);
});

test('a process gets the key that another one has created and put to use while it started', async () => {
  const settings = settingsFor('race');
  const other = () => readOrCreateMasterKeys(settings, async () => {});
  const keys = await readOrCreateMasterKeys(settings, async () => {
    await other();
    await inUse();
  });
  expect(keys).toEqual(await other());
});

test('no key is generated for an installation that uses another one', async () => {
  await expect(readOrCreateMasterKeys(settingsFor('lost'), inUse)).rejects.toThrow('the installation uses a key');
});
