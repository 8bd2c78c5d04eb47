import { beforeEach, describe, expect, test } from '@jest/globals';
import { type FileStore, generateFileId, type StoredFile } from '#application';
import { nodeRandomness } from '#runtime';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-11-22T13:10:00Z');
const BYTES = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 7) % 251));

async function readBytes(file: StoredFile | undefined, range?: { start: number; end: number }): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of file?.read(range) ?? []) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function* splitIntoChunks(bytes: Buffer, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/**
 * Tests that every adapter of the `FileStore` port must pass. `open` returns an empty store. `listLeftovers` lists what
 * is stored in it.
 */
export function fileStoreContract(
  name: string,
  open: () => Promise<{ readonly store: FileStore; listLeftovers(): Promise<readonly string[]> }>,
): void {
  describe(`${name}: a file`, () => {
    let store: FileStore;
    let leftovers: () => Promise<readonly string[]>;
    let id: string;
    beforeEach(async () => {
      ({ store, listLeftovers: leftovers } = await open());
      id = generateFileId(nodeRandomness, 'gen', NOW + 24 * HOUR);
    });

    test('is found unchanged, with its type and its size', async () => {
      expect(await store.save({ id, n: 0, mediaType: 'image/png', bytes: BYTES })).toBe(BYTES.length);
      const file = await store.find({ id, n: 0 });
      expect(file).toMatchObject({ mediaType: 'image/png', size: BYTES.length });
      expect(await readBytes(file)).toEqual(BYTES);
    });

    test.each([1, 1_000, 150_000])('is stored from chunks of %d bytes', async (size) => {
      const bytes = BYTES.subarray(0, size * 1_500);
      const file = { id, n: 3, mediaType: 'video/mp4', bytes: splitIntoChunks(bytes, size) };
      expect(await store.save(file)).toBe(bytes.length);
      expect(await readBytes(await store.find({ id, n: 3 }))).toEqual(bytes);
    });

    test('can be empty', async () => {
      expect(await store.save({ id, n: 0, mediaType: 'audio/mpeg', bytes: splitIntoChunks(Buffer.alloc(0), 1) })).toBe(
        0,
      );
      const file = await store.find({ id, n: 0 });
      expect(file).toMatchObject({ mediaType: 'audio/mpeg', size: 0 });
      expect(await readBytes(file)).toHaveLength(0);
    });

    test('can be read in part, to the byte', async () => {
      await store.save({ id, n: 0, mediaType: 'image/png', bytes: BYTES });
      for (const [start, end] of [
        [0, 0],
        [0, 99],
        [100_000, 100_010],
        [BYTES.length - 1, BYTES.length - 1],
        [1, BYTES.length - 1],
      ] as const) {
        expect(await readBytes(await store.find({ id, n: 0 }), { start, end })).toEqual(BYTES.subarray(start, end + 1));
      }
    });

    test('does not have to be read to its end', async () => {
      await store.save({ id, n: 0, mediaType: 'image/png', bytes: BYTES });
      for await (const chunk of (await store.find({ id, n: 0 }))?.read() ?? []) {
        expect(chunk.length).toBeGreaterThan(0);
        break;
      }
    });

    test('is replaced when it is saved again', async () => {
      await store.save({ id, n: 0, mediaType: 'image/png', bytes: BYTES });
      await store.save({ id, n: 0, mediaType: 'image/jpeg', bytes: Buffer.from('abc') });
      expect(await store.find({ id, n: 0 })).toMatchObject({ mediaType: 'image/jpeg', size: 3 });
      expect(String(await readBytes(await store.find({ id, n: 0 })))).toBe('abc');
    });

    test.each([0, 100_000, 6_000_000])(
      'whose content breaks off with an error after %d bytes is not found, and nothing of it stays in the store',
      async (size) => {
        const bytes = (async function* () {
          for (let remaining = size; remaining > 0; remaining -= 50_000) yield Buffer.alloc(50_000);
          throw new Error('body interrupted');
        })();
        await expect(store.save({ id, n: 0, mediaType: 'image/png', bytes })).rejects.toThrow('body interrupted');
        expect(await store.find({ id, n: 0 })).toBeUndefined();
        expect(await leftovers()).toEqual([]);
      },
    );

    test('has its old content and type if the content of its replacement breaks off with an error', async () => {
      await store.save({ id, n: 0, mediaType: 'image/png', bytes: Buffer.from('abc') });
      const bytes = (async function* () {
        yield Buffer.from('def');
        throw new Error('body interrupted');
      })();
      await expect(store.save({ id, n: 0, mediaType: 'image/jpeg', bytes })).rejects.toThrow('body interrupted');
      expect(await store.find({ id, n: 0 })).toMatchObject({ mediaType: 'image/png' });
      expect(String(await readBytes(await store.find({ id, n: 0 })))).toBe('abc');
    });

    test('has the bytes of one of two concurrent saves', async () => {
      const contents = [Buffer.alloc(100_000, 'a'), Buffer.alloc(100_000, 'b')];
      await Promise.all(
        contents.map((bytes) =>
          store.save({ id, n: 0, mediaType: 'image/png', bytes: splitIntoChunks(bytes, 10_000) }),
        ),
      );
      const stored = await readBytes(await store.find({ id, n: 0 }));
      expect(contents.some((bytes) => bytes.equals(stored))).toBe(true);
    });

    test('that was never saved is not found, whether its name is valid or not', async () => {
      await store.save({ id, n: 0, mediaType: 'image/png', bytes: BYTES });
      expect(await store.find({ id, n: 1 })).toBeUndefined();
      expect(await store.find({ id: generateFileId(nodeRandomness, 'gen', NOW), n: 0 })).toBeUndefined();
      for (const odd of ['', '..', `${id}/..`, `../${id}`, id.toUpperCase(), `${id} `, 'gen_'])
        expect(await store.find({ id: odd, n: 0 })).toBeUndefined();
      for (const n of [-1, 0.5, Number.NaN, 1e9]) expect(await store.find({ id, n })).toBeUndefined();
    });

    test.each([
      ['an invalid id', '../secret', 0, 'image/png'],
      ['an invalid number', undefined, -1, 'image/png'],
      ['an invalid type', undefined, 0, 'image/png\r\nx: y'],
    ])('is rejected if it has %s', async (_, odd, n, mediaType) => {
      await expect(store.save({ id: odd ?? id, n, mediaType, bytes: BYTES })).rejects.toThrow('invalid file name');
    });

    test('is removed with all files of its id and no others', async () => {
      const other = generateFileId(nodeRandomness, 'gen', NOW + 24 * HOUR);
      for (const n of [0, 1, 2]) await store.save({ id, n, mediaType: 'image/png', bytes: BYTES });
      await store.save({ id: other, n: 0, mediaType: 'image/png', bytes: BYTES });
      await store.remove(id);
      await store.remove(id);
      await store.remove('../x');
      for (const n of [0, 1, 2]) expect(await store.find({ id, n })).toBeUndefined();
      expect(await store.find({ id: other, n: 0 })).toBeDefined();
    });

    test('is removed once the hour of its deletion has come, and not before', async () => {
      const ids = [1, 2, 24].map((hours) => generateFileId(nodeRandomness, 'gen', NOW + hours * HOUR));
      const sealed = generateFileId(nodeRandomness, 'req', NOW + HOUR);
      for (const fileId of [...ids, sealed]) {
        for (const n of [0, 1])
          await store.save({ id: fileId, n, mediaType: 'image/png', bytes: BYTES.subarray(0, 9) });
      }
      const checkExistence = async () => {
        const files = await Promise.all([...ids, sealed].map((fileId) => store.find({ id: fileId, n: 1 })));
        return files.map((file) => file !== undefined);
      };
      expect(await store.removeExpired(NOW + HOUR)).toBe(0);
      expect(await checkExistence()).toEqual([true, true, true, true]);
      expect(await store.removeExpired(NOW + 2 * HOUR)).toBe(2);
      expect(await checkExistence()).toEqual([false, true, true, false]);
      expect(await store.removeExpired(NOW + 100 * HOUR)).toBe(2);
      expect(await checkExistence()).toEqual([false, false, false, false]);
      expect(await store.removeExpired(NOW + 100 * HOUR)).toBe(0);
      expect(await leftovers()).toEqual([]);
    });
  });
}
