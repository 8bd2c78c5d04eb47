import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { Journal } from './journal.ts';
import { EventLog, NO_STREAM } from './log.ts';

const MAX_APPEND_BYTES = 1024 * 1024;

describe('the journal of FakeEventStoreDb', () => {
  let directory: string;
  let file: string;
  const open = () => new EventLog(MAX_APPEND_BYTES, new Journal(file));

  beforeEach(() => {
    directory = mkdtempSync(path.join(tmpdir(), 'journal-'));
    file = path.join(directory, 'journal');
  });

  afterEach(() => rmSync(directory, { recursive: true }));

  const facts = (count: number) =>
    Array.from({ length: count }, () => ({
      id: randomUUID(),
      type: 'Happened',
      contentType: 'application/json',
      data: Buffer.from('{"what":"über\\n"}\n'),
      metadata: Buffer.from([0, 255, 10]),
    }));

  test('restores the same entries when it is opened again, and appends after them', () => {
    const log = open();
    log.append('account-1', NO_STREAM, facts(2));
    const [repeated] = facts(1);
    log.append('account-1', 1, [repeated as never]);
    log.append('account-2', NO_STREAM, facts(1));
    const again = open();
    expect(again.entries).toEqual(log.entries);
    expect(again.getStream('account-1')).toEqual(log.getStream('account-1'));
    expect(again.end).toBe(log.end);
    expect(again.append('account-1', 1, [repeated as never])).toMatchObject({ kind: 'stored', revision: 2 });
    expect(again.append('account-1', 1, facts(1))).toEqual({ kind: 'wrong-version', current: 2 });
    again.append('account-2', 0, facts(1));
    expect(open().entries).toEqual(again.entries);
  });

  test('drops the last append if its line is incomplete, and appends after the others', () => {
    const log = open();
    log.append('account-1', NO_STREAM, facts(1));
    const whole = [...log.entries];
    log.append('account-1', 0, facts(3));
    truncateSync(file, readFileSync(file).length - 1);
    const again = open();
    expect(again.entries).toEqual(whole);
    again.append('account-1', 0, facts(1));
    expect(open().entries).toEqual(again.entries);
  });
});
