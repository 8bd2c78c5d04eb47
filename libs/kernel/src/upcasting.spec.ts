import { beforeEach, describe, expect, test } from '@jest/globals';
import { MemoryEventStore } from '#eventstore';
import {
  type DecodedEventStore,
  type EventBatch,
  type EventSchema,
  NO_STREAM,
  START_POSITION,
  throwUnknownEvent,
  toSchemaFingerprint,
  UnknownEventError,
  withUpcasting,
} from '#kernel';

const known: EventSchema = {
  upcasters: {
    Kept: [],
    Changed: [(data: { cents: number }) => ({ amount: data.cents * 100 }), ({ amount }) => ({ units: `${amount}` })],
  },
  revision: 1,
  skippable: new Set(['Noted']),
};
const stream = 'thing-1';

let raw: MemoryEventStore;
let store: DecodedEventStore;
beforeEach(() => {
  raw = new MemoryEventStore();
  store = withUpcasting(raw, known);
});

let nr = 0;
const event = (type: string, data: unknown = {}, metadata = {}) => ({ id: `e${nr++}`, type, data, metadata });

async function readAll<T>(batches: AsyncIterable<T>): Promise<{ readonly batches: T[]; readonly error?: unknown }> {
  const read: T[] = [];
  try {
    for await (const batch of batches) read.push(batch);
    return { batches: read };
  } catch (error) {
    return { batches: read, error };
  }
}

describe('an event', () => {
  test('is appended in an older version if its schema states one', async () => {
    const earlier = withUpcasting(raw, { ...known, appendVersions: { Changed: 2 } });
    await earlier.append(stream, NO_STREAM, [event('Changed', { amount: 500 })]);
    expect((await readAll(raw.read(stream, NO_STREAM))).batches[0]?.[0]?.metadata).toEqual({ version: 2 });
    expect((await readAll(earlier.read(stream, NO_STREAM))).batches[0]?.[0]?.data).toEqual({ units: '500' });
  });

  test('is appended in the latest version of its type, whose number is stored from version 2 on', async () => {
    await store.append(stream, NO_STREAM, [event('Kept', {}, { actor: 'me' }), event('Changed')]);
    const { batches } = await readAll(raw.read(stream, NO_STREAM));
    expect(batches[0]?.map(({ metadata }) => metadata)).toEqual([{ actor: 'me' }, { version: 3 }]);
  });

  test('is not appended if its type is unknown', async () => {
    await expect(store.append(stream, NO_STREAM, [event('Made up')])).rejects.toThrow(TypeError);
    await expect(store.append(stream, NO_STREAM, [event('toString')])).rejects.toThrow(TypeError);
    expect(await raw.readHead(stream)).toBeUndefined();
  });

  test.each([
    ['1 (omitted)', { cents: 5 }, {}],
    ['1', { cents: 5 }, { version: 1 }],
    ['2', { amount: 500 }, { version: 2 }],
    ['3', { units: '500' }, { version: 3 }],
  ])('is read with data of the latest version and no other change if its version is %s', async (_, data, metadata) => {
    await raw.append(stream, NO_STREAM, [event('Kept'), event('Changed', data, metadata)]);
    const [stored] = (await readAll(raw.readAll(0n))).batches.flatMap(({ events }) => events);
    const fact = { ...stored, data: { units: '500' } };
    expect((await readAll(store.read(stream, 0))).batches).toEqual([[fact]]);
    const batch: EventBatch = { events: [fact as never], position: 1n };
    expect((await readAll(store.readAll(0n))).batches).toEqual([batch]);
    for await (const followed of store.subscribe(0n, new AbortController().signal)) {
      expect(followed).toEqual(batch);
      break;
    }
  });
});

describe.each([
  ['of an unknown type', event('Made up')],
  ['of a type with the name of a property of every object', event('constructor')],
  ['of a newer version', event('Changed', {}, { version: 4 })],
])('an event %s', (_, unknown) => {
  beforeEach(async () => {
    await raw.append(stream, NO_STREAM, [event('Kept'), event('Noted'), unknown, event('Kept')]);
  });

  test('stops readers of its stream', async () => {
    expect(await readAll(store.read(stream, 1))).toEqual({ batches: [], error: expect.any(UnknownEventError) });
    expect(await readAll(store.read(stream, 2))).toMatchObject({ batches: [[{ revision: 3 }]] });
  });

  test.each(['readAll', 'subscribe'] as const)('stops %s after the events before it', async (reading) => {
    const read = await readAll(store[reading](START_POSITION, new AbortController().signal));
    expect(read).toMatchObject({ batches: [{ events: [{ type: 'Kept' }], position: 0n }] });
    expect(read.error).toBeInstanceOf(UnknownEventError);
    expect(await readAll(store[reading](1n, new AbortController().signal))).toMatchObject({
      batches: [],
      error: { message: expect.stringMatching(/position 2, revision 2 of thing-1/) },
    });
  });
});

test('lenient readers of the log list readable events, and unreadable ones with their errors', async () => {
  const broken = event('Changed', null);
  await raw.append(stream, NO_STREAM, [event('Kept'), event('Made up'), event('Noted'), broken, event('Kept')]);
  const batch = {
    events: [{ revision: 0 }, { revision: 4 }],
    position: 4n,
    unreadable: [
      { event: { revision: 1, type: 'Made up' }, error: expect.any(UnknownEventError) },
      { event: { revision: 3, type: 'Changed', data: null }, error: expect.any(TypeError) },
    ],
  };
  expect((await readAll(store.lenient.readAll(START_POSITION))).batches).toMatchObject([batch]);
  for await (const followed of store.lenient.subscribe(START_POSITION, new AbortController().signal)) {
    expect(followed).toMatchObject(batch);
    break;
  }
  expect((await readAll(store.lenient.read(stream, NO_STREAM))).error).toBeInstanceOf(UnknownEventError);
});

test('skippable events are omitted from the log, but fail reads of their stream', async () => {
  await raw.append(stream, NO_STREAM, [event('Noted'), event('Kept'), event('Noted')]);
  expect((await readAll(store.readAll(START_POSITION))).batches).toMatchObject([
    { events: [{ type: 'Kept' }], position: 2n },
  ]);
  expect((await readAll(store.read(stream, NO_STREAM))).error).toBeInstanceOf(UnknownEventError);
});

test('throwUnknownEvent throws UnknownEventError', () => {
  expect(() => throwUnknownEvent({ type: 'Made up', data: {} } as never)).toThrow(UnknownEventError);
});

test('the schema fingerprint changes with the revision and new versions of types, but not with new types', () => {
  const changed = (more: Partial<EventSchema>) => toSchemaFingerprint({ ...known, ...more });
  const versions = [
    changed({}),
    changed({ revision: 2 }),
    changed({ upcasters: { ...known.upcasters, Kept: [(data) => data] } }),
    changed({ upcasters: { Kept: [], Changed: [] } }),
  ];
  expect(new Set(versions).size).toBe(versions.length);
  expect(changed({ upcasters: { ...known.upcasters, Made: [] } })).toBe(changed({}));
});
