import { expect, test } from '@jest/globals';
import { type Sample, SampleRegistry, SampleStore } from '#application';
import { SampleExchange } from './sample-exchange.ts';

const SAMPLES = [{ name: 'a', value: 1 }];

/** Responds to the n-th read when the test settles the n-th response. */
class SlowStore extends SampleStore {
  readonly responses = [1, 2].map(() => Promise.withResolvers<readonly Sample[]>());
  reads = 0;

  async add(): Promise<void> {}

  readNew(): Promise<readonly Sample[]> {
    return this.responses[this.reads++]?.promise ?? Promise.resolve([]);
  }
}

function createExchange() {
  const [samples, store] = [new SampleRegistry(), new SlowStore()];
  const [first, second] = store.responses as [(typeof store.responses)[0], (typeof store.responses)[0]];
  const problems: unknown[] = [];
  const exchange = new SampleExchange(samples, store, (_, error) => void problems.push(error));
  return { samples, store, first, second, problems, exchange, count: () => samples.get('a')?.count };
}

test('an exchange does not start while another is running', async () => {
  const { store, first, exchange, count } = createExchange();
  const both = Promise.all([exchange.exchange(), exchange.exchange()]);
  first.resolve(SAMPLES);
  await both;
  expect([store.reads, count()]).toEqual([1, 1]);
});

test('a failure is reported, and the next exchange tries again', async () => {
  const { first, second, problems, exchange, count } = createExchange();
  first.reject(new Error('no database'));
  await exchange.exchange();
  expect([problems, count()]).toEqual([[new Error('no database')], undefined]);
  second.resolve(SAMPLES);
  await exchange.exchange();
  expect([problems.length, count()]).toEqual([1, 1]);
});

test('a start waits only briefly for a database that does not respond, and uses a late response', async () => {
  const { first, problems, exchange, count } = createExchange();
  await exchange.start(1);
  expect(problems.map(String)).toEqual([expect.stringContaining('did not respond in time')]);
  first.resolve(SAMPLES);
  await exchange.close();
  expect(count()).toBe(1);
});

test('a start waits for the measurements of others', async () => {
  const { first, problems, exchange, count } = createExchange();
  first.resolve(SAMPLES);
  await exchange.start();
  expect([problems, count()]).toEqual([[], 1]);
  await exchange.close();
});
