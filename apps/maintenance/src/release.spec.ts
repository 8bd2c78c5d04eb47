import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { formatRelease, RELEASE } from '#foundation';
import { listDatabases } from './databases.ts';

const root = path.resolve(import.meta.dirname, '../../..');
const readText = (file: string) => readFileSync(path.join(root, file), 'utf8');
const { version } = JSON.parse(readText('package.json')) as { version: string };
const [{ migrations } = { migrations: [] }] = listDatabases('postgres://localhost/one', undefined);

test('the release is that of package.json, and its schema is the number of its migrations', () => {
  expect(RELEASE).toMatchObject({ version, schema: migrations.length });
  expect(formatRelease({ version: '1.2.3', commit: '0123456789abcdef', schema: 7 })).toBe(
    'countinghouse 1.2.3 (commit 0123456789ab, schema 7)',
  );
});

test('the changelog describes this version', () => {
  expect(readText('CHANGELOG.md')).toContain(`\n## ${version}\n`);
});

test('the listed releases are in the changelog in the same order, each with its full commit', () => {
  const listed = JSON.parse(readText('infra/releases.json')) as readonly { version: string; commit: string }[];
  const described = [...readText('CHANGELOG.md').matchAll(/^## (\d+\.\d+\.\d+)$/gm)].map(([, name]) => name);
  const expected = described.toReversed().slice(0, listed.length);
  expect(listed.map((release) => release.version)).toEqual(expected);
  for (const { commit } of listed) expect(commit).toMatch(/^[0-9a-f]{40}$/);
});

/** Number of migrations from before version 1.0.0, which never grows. */
const BEFORE_FIRST_RELEASE = 44;

test('every migration from version 1.0.0 on states what it changes, and which programs still work after it', () => {
  const stated = migrations.filter(({ changes, minContract }) => changes !== undefined && minContract !== undefined);
  expect(migrations.length - stated.length).toBe(BEFORE_FIRST_RELEASE);
});
