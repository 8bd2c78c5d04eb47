import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test } from '@jest/globals';
import { type FileStore, newFileId } from '#application';
import { LocalFiles } from '#connectors';
import { expireFiles } from '#sagas';
import { replacePauses } from '../../testing/src/pauses.ts';
import { VirtualTime } from '../../testing/src/virtual-time.ts';

const HOUR = 3_600_000;
const time = new VirtualTime('2026-11-22T12:10:00.000Z');
afterAll(replacePauses(time.delay));

let directory: string;
let files: FileStore;
let stop: AbortController;
let running: Promise<void>;
let alarms: string[];
let swept: number;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-expiry-'));
  files = await LocalFiles.open(directory);
  stop = new AbortController();
  alarms = [];
  swept = 0;
});
afterEach(async () => {
  stop.abort();
  await running;
  await rm(directory, { recursive: true });
});

function start(removeExpired: FileStore['removeExpired'] = (now) => files.removeExpired(now)): void {
  const counted = async (now: number) => {
    try {
      return await removeExpired(now);
    } finally {
      swept += 1;
    }
  };
  const store = { ...files, removeExpired: counted } as FileStore;
  running = expireFiles({ files: store, clock: time, alarm: (problem) => alarms.push(problem) }, stop.signal);
}

const sweeps = async (count: number) => {
  while (swept < count) await new Promise(setImmediate);
};

const passUntil = async (happened: () => Promise<boolean>) => {
  while (!(await happened())) await time.pass(60_000);
};

test('files are deleted after their hour has begun, and no sooner', async () => {
  const kept = async (hours: number) => {
    const id = newFileId('gen', time.milliseconds() + hours * HOUR);
    await files.keep({ id, n: 0, mediaType: 'image/png', bytes: Buffer.from('abc') });
    return { id, n: 0 };
  };
  const [soon, later] = [await kept(0.5), await kept(24)];
  start();
  await sweeps(1);
  expect(await files.find(soon)).toBeDefined();
  await passUntil(async () => (await files.find(soon)) === undefined);
  expect(new Date(time.milliseconds()).toISOString()).toMatch(/^2026-11-22T13:/);
  expect(await files.find(later)).toBeDefined();
  await passUntil(async () => (await readdir(directory)).length === 0);
  expect(new Date(time.milliseconds()).toISOString()).toMatch(/^2026-11-23T1[34]:/);
});

test('a store that is away is asked again', async () => {
  let away = true;
  start(async (now) => {
    if (away) throw new Error('away');
    return files.removeExpired(now);
  });
  await sweeps(1);
  away = false;
  await passUntil(async () => swept === 2);
  expect(alarms).toEqual(['files whose time is over could not be deleted; trying again']);
});

test('expired files are looked for every five minutes', async () => {
  const begun = time.milliseconds();
  const looks: number[] = [];
  start(async (now) => looks.push(now));
  await time.pass(15 * 60_000);
  expect(looks.map((at) => (at - begun) / 60_000)).toEqual([0, 5, 10, 15]);
});
