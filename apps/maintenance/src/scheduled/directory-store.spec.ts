import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createBackupName } from './backup-names.ts';
import { DirectoryStore } from './directory-store.ts';

/** The user `nobody`, who may not read what belongs to the superuser. */
const NOBODY = 65_534;
const isSuperuser = process.getuid?.() === 0;
const backup = createBackupName(new Date(0), '00000000');
const file = `${backup}/es.events.copy.gz.age`;
let root: string;

beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'countinghouse-directory-'));
  if (!isSuperuser) return;
  await chown(root, NOBODY, NOBODY);
  process.seteuid?.(NOBODY);
});

afterEach(async () => {
  if (isSuperuser) process.seteuid?.(0);
  await rm(root, { recursive: true });
});

test('a directory that the role may not read is ignored, as lost+found on the root of a disk', async () => {
  const store = await DirectoryStore.open(root);
  await store.write(file, Readable.from([Buffer.from('x')]));
  await mkdir(path.join(root, 'lost+found'), { mode: 0 });

  expect(await store.list()).toEqual([file]);
});
