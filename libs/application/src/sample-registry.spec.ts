import { expect, test } from '@jest/globals';
import { type Sample, SampleRegistry, SampleStore } from './sample-registry.ts';

class FakeStore extends SampleStore {
  readonly added: Sample[][] = [];
  others: readonly Sample[] = [];
  failure: Error | undefined;

  async add(samples: readonly Sample[]): Promise<void> {
    if (this.failure) throw this.failure;
    this.added.push([...samples]);
  }

  async readNew(): Promise<readonly Sample[]> {
    const { others } = this;
    this.others = [];
    return others;
  }
}

test('adds its own samples once, and nothing if there are none', async () => {
  const [registry, store] = [new SampleRegistry(), new FakeStore()];
  await registry.exchange(store);
  registry.record('a', 1);
  await registry.exchange(store);
  await registry.exchange(store);
  expect(store.added).toEqual([[{ name: 'a', value: 1 }]]);
});

test('counts the samples of others like its own, and does not add them again', async () => {
  const [registry, store] = [new SampleRegistry(), new FakeStore()];
  store.others = [{ name: 'a', value: 7 }];
  await registry.exchange(store);
  await registry.exchange(store);
  expect(registry.get('a')?.getPercentile(99)).toBe(7);
  expect(store.added).toEqual([]);
});

test('adds samples later if the store fails, and at most the newest 128 of each measurement', async () => {
  const [registry, store] = [new SampleRegistry(), new FakeStore()];
  for (let value = 1; value <= 100; value++) registry.record('many', value);
  registry.record('one', 1);
  store.failure = new Error('no database');
  await expect(registry.exchange(store)).rejects.toBe(store.failure);
  for (let value = 101; value <= 200; value++) registry.record('many', value);
  store.failure = undefined;
  await registry.exchange(store);
  const [added = []] = store.added;
  const many = added.filter(({ name }) => name === 'many').map(({ value }) => value);
  expect([many.length, many.at(0), many.at(-1), added.length]).toEqual([128, 73, 200, 129]);
});

test('stores samples that are recorded while others are being added', async () => {
  const [registry, store] = [new SampleRegistry(), new FakeStore()];
  registry.record('a', 1);
  const exchanging = registry.exchange(store);
  registry.record('a', 2);
  await exchanging;
  await registry.exchange(store);
  expect(store.added).toEqual([[{ name: 'a', value: 1 }], [{ name: 'a', value: 2 }]]);
});
