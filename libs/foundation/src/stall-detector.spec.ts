import { expect, test } from '@jest/globals';
import { type ReaderProgress, StallDetector } from './stall-detector.ts';

/** Probes with the given results, one every second. @returns what the detector found each time */
async function probeEverySecond(results: readonly (Error | Readonly<Record<string, ReaderProgress>>)[]) {
  let now = 0;
  let probes = 0;
  const probe = async () => {
    const result = results[probes++] ?? {};
    if (result instanceof Error) throw result;
    return new Map(Object.entries(result));
  };
  const detector = new StallDetector(probe, { now: () => now });
  const found: (string | undefined)[] = [];
  for (const _ of results) {
    now += 1_000;
    found.push(await detector.findStall());
  }
  return found;
}

const lagging = (state: number) => ({ isLagging: true, state: String(state) });
const repeat = <T>(times: number, value: T): T[] => Array.from({ length: times }, () => value);

test('a leader without new events, or that advances, does not stall', async () => {
  const idle = repeat(9, { keys: { isLagging: false, state: '7' } });
  const busy = Array.from({ length: 9 }, (_, i) => ({ keys: lagging(i) }));
  expect((await probeEverySecond([...idle, ...busy])).filter(Boolean)).toEqual([]);
});

test('a leader stalls when one of its readers has not advanced for 5 s although there are events', async () => {
  const results = Array.from({ length: 6 }, (_, i) => ({ keys: lagging(7), history: lagging(i) }));
  expect(await probeEverySecond(results)).toEqual([...repeat(5, undefined), 'it does not process new events: keys']);
});

test('a leader stalls when its stores have not responded for 5 s', async () => {
  const found = await probeEverySecond(repeat(5, new Error('timeout')));
  expect(found).toEqual([...repeat(4, undefined), 'its stores do not respond: timeout']);
});

test('a leader stalls when most probes fail for 5 s, even if some succeed', async () => {
  const broken = new Error('connection terminated');
  const found = await probeEverySecond([broken, broken, {}, broken, {}, broken]);
  expect(found.map(Boolean)).toEqual([false, false, false, false, false, true]);
});

test('after an interruption that was shorter, readers have 5 s again to advance', async () => {
  const stuck = { keys: lagging(7) };
  const found = await probeEverySecond([...repeat(4, stuck), ...repeat(3, new Error('gone')), ...repeat(5, stuck)]);
  expect(found.filter(Boolean)).toEqual([]);
});

test('a leader works if its probe succeeds and each reader has nothing to process or has advanced', async () => {
  const idle = { keys: { isLagging: false, state: '7' } };
  const results = [idle, { keys: lagging(7) }, { keys: lagging(8) }, new Error('timeout'), { keys: lagging(8) }, idle];
  const detector = new StallDetector(async () => {
    const result = results.shift() ?? {};
    if (result instanceof Error) throw result;
    return new Map(Object.entries(result));
  });
  const working = [detector.isWorking];
  while (results.length > 0) {
    await detector.findStall();
    working.push(detector.isWorking);
  }
  expect(working).toEqual([false, true, false, true, false, false, true]);
});

test('a probe that never responds fails', async () => {
  const detector = new StallDetector(() => new Promise(() => {}), { maxStallMs: 0, probeTimeoutMs: 5 });
  expect(await detector.findStall()).toBe('its stores do not respond: no response in time');
});
