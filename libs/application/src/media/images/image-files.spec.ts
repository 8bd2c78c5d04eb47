import { afterAll, beforeEach, expect, test } from '@jest/globals';
import { DownloadError, ImageFiles } from '#application';
import { replaceDelays } from '../../../../testing/src/replace-delays.ts';
import { createTestRuntime } from '../../../../testing/src/test-runtime.ts';

const waits: number[] = [];
const problems: string[] = [];
afterAll(replaceDelays(async (milliseconds) => void waits.push(milliseconds)));
beforeEach(() => {
  waits.splice(0);
  problems.splice(0);
});

/** Fetches a generated image while each download fails with this error. Returns the image and the number of attempts. */
async function fetchFailing(error: Error, signal = new AbortController().signal) {
  let attempts = 0;
  const fetchProviderFile = async () => {
    attempts++;
    throw error;
  };
  const files = new ImageFiles({
    downloads: { fetchProviderFile },
    runtime: createTestRuntime({ reportError: (problem) => void problems.push(problem) }),
  } as never);
  const image = await files.fetchGenerated('fal', { kind: 'url', url: 'https://fal.example/1.png' } as never, signal);
  return { image, attempts };
}

const REPORTED = ['an image that fal has generated could not be fetched'];

test('a generated image is fetched three times if the download fails, and its loss is reported', async () => {
  const failed = new DownloadError('reset', 'failed');
  expect(await fetchFailing(failed)).toEqual({ image: undefined, attempts: 3 });
  expect([waits.length, problems]).toEqual([2, REPORTED]);
  for (const waitMs of waits) expect(waitMs).toBeLessThanOrEqual(200);
});

test.each([new DownloadError('gone', 'not_found'), new TypeError('x is not a function')])(
  'a generated image is fetched once if a retry would fail in the same way: %s',
  async (error) => {
    expect(await fetchFailing(error)).toEqual({ image: undefined, attempts: 1 });
    expect([waits, problems]).toEqual([[], REPORTED]);
  },
);

test('a generated image is not fetched, and nothing is reported, after the request was aborted', async () => {
  expect(await fetchFailing(new DownloadError('reset', 'failed'), AbortSignal.abort())).toMatchObject({ attempts: 0 });
  expect(problems).toEqual([]);
});
