import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createSecretFile } from './secret-file.ts';

let directory: string;
let file: string;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'secret-file-'));
  file = path.join(directory, 'secret');
});

afterEach(() => rm(directory, { recursive: true }));

test('all of 50 concurrent calls read the complete secret of one of them', async () => {
  const secrets = Array.from({ length: 50 }, (_, i) => String(i).padStart(64, '0'));
  const read = await Promise.all(
    secrets.map(async (secret) => {
      await createSecretFile(file, secret);
      return readFile(file, 'utf8');
    }),
  );
  expect(secrets).toContain(read[0]);
  expect(new Set(read).size).toBe(1);
});

test('the file is readable by its owner only, and nothing else stays in the directory', async () => {
  await createSecretFile(file, 'a');
  await createSecretFile(file, 'b');
  expect(await readdir(directory)).toEqual(['secret']);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});
