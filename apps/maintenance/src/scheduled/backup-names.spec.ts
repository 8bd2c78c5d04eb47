import { expect, test } from '@jest/globals';
import {
  createBackupName,
  findNewest,
  listAbandoned,
  listBackups,
  listExpired,
  readBackupTime,
} from './backup-names.ts';

const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-11-28T12:00:00Z');
const at = (days: number) => createBackupName(new Date(NOW - days * DAY_MS), '00000000');
const complete = (days: number) => [`${at(days)}/es.events.copy.gz.age`, `${at(days)}/manifest.json.age`];
const incomplete = (days: number) => [`${at(days)}/es.events.copy.gz.age`, `${at(days)}/manifest.json.age.partial`];
const expired = (paths: readonly string[], retentionDays: number) =>
  listExpired(listBackups(paths), NOW, retentionDays * DAY_MS).map(({ name }) => name);

test('the name of a backup has its time, to the second', () => {
  expect(at(0)).toBe('2026-11-28T12-00-00Z-00000000');
  expect(readBackupTime(at(3))).toBe(NOW - 3 * DAY_MS);
});

test('the newest backup is complete, and not from the future', () => {
  const backups = listBackups([...complete(3), ...complete(-2), ...incomplete(0), ...complete(2), 'notes.txt', 'a/b']);
  expect(findNewest(backups, NOW)?.name).toBe(at(2));
  expect(findNewest(listBackups(incomplete(1)), NOW)).toBeUndefined();
});

test('backups expire by age, the oldest first, and at most two at a time, so that an incorrect clock deletes few', () => {
  expect(expired([...complete(29), ...complete(1)], 30)).toEqual([]);
  expect(expired([...complete(31), ...complete(1)], 30)).toEqual([at(31)]);
  expect(expired([33, 32, 31, 1].flatMap(complete), 30)).toEqual([at(33), at(32)]);
});

test('the last complete backup does not expire, and one from the future does not replace it', () => {
  expect(expired(complete(400), 30)).toEqual([]);
  expect(expired([...complete(400), ...incomplete(0), ...complete(-1)], 30)).toEqual([]);
});

test('an incomplete backup is abandoned when no process can still write it', () => {
  const abandoned = listAbandoned(listBackups([...incomplete(2), ...incomplete(0), ...complete(3)]), NOW);
  expect(abandoned.map(({ name }) => name)).toEqual([at(2)]);
});
