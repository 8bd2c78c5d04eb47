import { expect, test } from '@jest/globals';
import { SampleWindow } from './sample-window.ts';

function createWindow(samples: readonly number[]): SampleWindow {
  const window = new SampleWindow();
  for (const sample of samples) window.add(sample);
  return window;
}

const upTo = (highest: number) => Array.from({ length: highest }, (_, i) => i + 1);

test('a window without samples has no percentiles, and one with a single sample has only that', () => {
  expect(new SampleWindow().getPercentile(99)).toBeUndefined();
  const window = createWindow([7]);
  expect([window.count, window.getPercentile(75), window.getPercentile(99)]).toEqual([1, 7, 7]);
});

test('percentiles do not depend on the order of the samples', () => {
  for (const samples of [upTo(128), upTo(128).reverse()]) {
    const window = createWindow(samples);
    expect(([75, 90, 95, 99] as const).map((each) => window.getPercentile(each))).toEqual([97, 118, 124, 127]);
  }
});

test('high percentiles of few samples are estimated as higher ones, at most as the highest sample', () => {
  const window = createWindow(upTo(20));
  expect(([75, 90, 95] as const).map((each) => window.getPercentile(each))).toEqual([16, 19, 20]);
});

test('only the newest 128 samples count', () => {
  const window = createWindow([...Array(128).fill(5_000), ...upTo(128)]);
  expect([window.count, window.getPercentile(99)]).toEqual([128, 127]);
});

test('a sample above all others counts at once', () => {
  const window = createWindow([...Array(50).fill(10), 9_000]);
  expect([window.getPercentile(75), window.getPercentile(99)]).toEqual([10, 9_000]);
});
