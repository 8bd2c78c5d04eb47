import { expect, test } from '@jest/globals';
import { UpstreamFailure } from '#application';
import { base64Of, Inlined } from './inlined.ts';

const file = (size: number) => new Blob([new Uint8Array(size)]);
const open = new AbortController().signal;

/** A request that is sent until it is told to end. */
function sending(inlined: Inlined, size: number, signal = open) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const state = { begun: false };
  const done = inlined.during([file(size)], signal, () => {
    state.begun = true;
    return promise;
  });
  return { state, done, end: resolve };
}

const soon = () => new Promise((resolve) => setImmediate(resolve));

test('requests with files wait for their turn, and those without do not', async () => {
  const inlined = new Inlined(10);
  const [first, second, third] = [sending(inlined, 6), sending(inlined, 6), sending(inlined, 1)];
  expect(await inlined.during([], open, async () => 'sent')).toBe('sent');
  await soon();
  expect([first, second, third].map(({ state }) => state.begun)).toEqual([true, false, false]);
  first.end();
  await first.done;
  await soon();
  expect([second, third].map(({ state }) => state.begun)).toEqual([true, true]);
  second.end();
  third.end();
  await Promise.all([second.done, third.done]);
});

test('one that is larger than all there is goes alone', async () => {
  const inlined = new Inlined(10);
  const [large, small] = [sending(inlined, 100), sending(inlined, 1)];
  await soon();
  expect([large.state.begun, small.state.begun]).toEqual([true, false]);
  large.end();
  await large.done;
  small.end();
  await small.done;
});

test('one that is given up makes room for those behind it', async () => {
  const inlined = new Inlined(10);
  const first = sending(inlined, 6);
  const abort = new AbortController();
  const second = sending(inlined, 8, abort.signal);
  const third = sending(inlined, 4);
  abort.abort(new UpstreamFailure('client_disconnected', 'gone'));
  await expect(second.done).rejects.toMatchObject({ code: 'client_disconnected' });
  await soon();
  expect([second.state.begun, third.state.begun]).toEqual([false, true]);
  first.end();
  third.end();
  await Promise.all([first.done, third.done]);
  await expect(sending(inlined, 1, abort.signal).done).rejects.toMatchObject({ code: 'client_disconnected' });
});

test('a file is base64 of its bytes', async () => {
  expect(await base64Of(new Blob(['coin']))).toBe(Buffer.from('coin').toString('base64'));
});
