import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { FileStoreUnavailableError, generateFileId } from '#application';
import { nodeRandomness } from '#runtime';
import { fileStoreContract } from '#testing';
import { LocalFiles } from './local-files.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-files-'));
});
afterAll(() => rm(directory, { recursive: true }));

let opened = 0;
const newRoot = () => path.join(directory, String(opened++));

fileStoreContract('LocalFiles', async () => {
  const root = newRoot();
  const filesIn = async () => {
    const found = await readdir(root, { recursive: true, withFileTypes: true });
    return found.filter((each) => each.isFile()).map(({ name }) => name);
  };
  return { store: await LocalFiles.open(root), listLeftovers: filesIn };
});

const file = () => ({
  id: generateFileId(nodeRandomness, 'gen', Date.now()),
  n: 0,
  mediaType: 'image/png',
  bytes: Buffer.from('abc'),
});

test('only the user of the process can read stored files', async () => {
  const root = newRoot();
  await (await LocalFiles.open(root)).save(file());
  const found = await readdir(root, { recursive: true, withFileTypes: true });
  for (const each of found) {
    const { mode } = await stat(path.join(each.parentPath, each.name));
    expect([each.name, mode & 0o077]).toEqual([each.name, 0]);
  }
});

test('a store whose directory cannot be used fails with FileStoreUnavailableError', async () => {
  const root = newRoot();
  const store = await LocalFiles.open(root);
  await rm(root, { recursive: true });
  await writeFile(root, 'in its place');
  await expect(store.save(file())).rejects.toThrow(FileStoreUnavailableError);
  await expect(store.find(file())).rejects.toThrow('Files cannot be stored or read at the moment');
  await expect(store.removeExpired(0)).rejects.toThrow(FileStoreUnavailableError);
  await expect(LocalFiles.open(path.join(root, 'below'))).rejects.toThrow(FileStoreUnavailableError);
});

test('a directory that is not writable is rejected at the start', async () => {
  await expect(LocalFiles.open('/proc/self')).rejects.toThrow(FileStoreUnavailableError);
});

test('a file that is not in the directory of an hour is not removed', async () => {
  const root = newRoot();
  const store = await LocalFiles.open(root);
  await writeFile(path.join(root, 'notes.txt'), 'mine');
  expect(await store.removeExpired(Number.MAX_SAFE_INTEGER)).toBe(0);
  expect(await readdir(root)).toEqual(['notes.txt']);
});
