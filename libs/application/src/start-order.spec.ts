import { expect, test } from '@jest/globals';
import { StartOrder } from './start-order.ts';

function createOrder(maxWaiting = 100) {
  const accepted: string[] = [];
  return { order: new StartOrder<string>(maxWaiting, (value) => accepted.push(value)), accepted };
}

test('results are passed on in the order of the starts, whatever the order of the ends', () => {
  const { order, accepted } = createOrder();
  const [a, b, c] = [order.start(), order.start(), order.start()];
  c('c');
  b('b');
  expect(accepted).toEqual([]);
  a('a');
  expect(accepted).toEqual(['a', 'b', 'c']);
  order.start()('d');
  expect(accepted).toEqual(['a', 'b', 'c', 'd']);
});

test('a task without a result delays later ones until its end, and passes nothing on', () => {
  const { order, accepted } = createOrder();
  const failed = order.start();
  order.start()('b');
  failed();
  failed('too late');
  expect(accepted).toEqual(['b']);
});

test('a long task is overtaken after a number of others, and its own result is passed on when it ends', () => {
  const { order, accepted } = createOrder(2);
  const long = order.start();
  order.start()('b');
  expect(accepted).toEqual([]);
  const next = order.start();
  expect(accepted).toEqual(['b']);
  long('long');
  next('c');
  expect(accepted).toEqual(['b', 'long', 'c']);
});
