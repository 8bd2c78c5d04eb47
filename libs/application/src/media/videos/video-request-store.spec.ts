import { expect, test } from '@jest/globals';
import {
  FileStore,
  type FileToStore,
  parseFileId,
  Secrets,
  StoredRequestLostError,
  VideoRequestStore,
} from '#application';
import { createTestRuntime } from '../../../../testing/src/test-runtime.ts';

class Files extends FileStore {
  bytes: Uint8Array | undefined;

  async save({ bytes }: FileToStore): Promise<number> {
    this.bytes = bytes as Uint8Array;
    return this.bytes.length;
  }

  async find() {
    const { bytes } = this;
    if (!bytes) return undefined;
    const halves = [bytes.subarray(0, 9), bytes.subarray(9)];
    const read = async function* () {
      yield* halves;
    };
    return { mediaType: '', size: bytes.length, read };
  }

  async remove(): Promise<void> {}
  async removeExpired(): Promise<number> {
    return 0;
  }
  async close(): Promise<void> {}
}

const UNTIL = Date.parse('2026-11-20T12:00:00.000Z');
const secrets = new Secrets(createTestRuntime(), Buffer.alloc(32, 1));
const runtime = createTestRuntime();
const request = {
  prompt: 'A harbour “at dusk”',
  image: { mediaType: 'image/png', bytes: Buffer.from([0, 1, 2, 255]) },
  orders: [{ parameters: { duration: '5' }, wire: { always: { generate_audio: true } } }],
};

test('seals a request and opens it unchanged, with and without an image', async () => {
  const files = new Files();
  const requests = new VideoRequestStore(files, secrets, runtime);
  const place = await requests.save(request, UNTIL);
  expect(parseFileId(place.file)).toEqual({ purpose: 'req', hour: UNTIL / 3_600_000 });
  expect(Buffer.from(files.bytes ?? []).includes('harbour')).toBe(false);
  expect(await requests.load(place)).toEqual(request);
  const plain = { ...request, image: undefined };
  expect(await requests.load(await requests.save(plain, UNTIL))).toEqual(plain);
});

test('reports a request as lost if it was changed, deleted or sealed with another master key', async () => {
  const files = new Files();
  const requests = new VideoRequestStore(files, secrets, runtime);
  const place = await requests.save(request, UNTIL);
  const other = new VideoRequestStore(files, new Secrets(createTestRuntime(), Buffer.alloc(32, 2)), runtime);
  await expect(other.load(place)).rejects.toBeInstanceOf(StoredRequestLostError);
  (files.bytes as Uint8Array)[20] = ((files.bytes as Uint8Array)[20] ?? 0) ^ 1;
  await expect(requests.load(place)).rejects.toBeInstanceOf(StoredRequestLostError);
  files.bytes = undefined;
  await expect(requests.load(place)).rejects.toBeInstanceOf(StoredRequestLostError);
});
