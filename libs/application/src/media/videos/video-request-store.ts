/**
 * Stores the requests of videos for their providers. Requests are sealed in the file store, because they are too large
 * and too private for events.
 */
import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import type { VideoRequested } from '#domain';
import type { Randomness } from '#kernel';
import { divide } from '../../event-loop.ts';
import type { MediaParameters, SourceImage, WireMapping } from '../../providers/media-calls.ts';
import type { Secrets } from '../../secrets.ts';
import { type FileStore, generateFileId } from '../file-store.ts';

export interface StoredVideoRequest {
  readonly prompt: string;
  readonly image: SourceImage | undefined;
  /** For each endpoint, in order: the parameters in addition to the prompt, and how they are sent. */
  readonly orders: readonly { readonly parameters: MediaParameters; readonly wire: WireMapping }[];
}

type StoredRequestRef = VideoRequested['data']['request'];

const SEALED = 'application/octet-stream';
const LENGTH_BYTES = 4;

/** The stored request was deleted, was changed, or its master key is missing here. */
export class StoredRequestLostError extends Error {
  override readonly name = 'StoredRequestLostError';
}

export class VideoRequestStore {
  constructor(
    private readonly files: FileStore,
    private readonly secrets: Secrets,
    private readonly randomness: Pick<Randomness, 'generateBytes'>,
  ) {}

  /** @param until milliseconds since 1970; the request is deleted after the next full hour */
  async save({ image, ...texts }: StoredVideoRequest, until: number): Promise<StoredRequestRef> {
    const header = Buffer.from(JSON.stringify({ ...texts, mediaType: image?.mediaType }));
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32BE(header.length);
    const bytes = await this.secrets.sealBytes(length, header, ...(image ? [image.bytes] : []));
    const file = generateFileId(this.randomness, 'req', until);
    await this.files.save({ id: file, n: 0, mediaType: SEALED, bytes });
    return { file, sha256: await toSha256(bytes) };
  }

  /** @throws StoredRequestLostError; any other error if the file store is unavailable */
  async load({ file, sha256 }: StoredRequestRef): Promise<StoredVideoRequest> {
    const storedFile = await this.files.find({ id: file, n: 0 });
    if (!storedFile) throw new StoredRequestLostError('The request is no longer stored');
    const sealed = await buffer(storedFile.read());
    if ((await toSha256(sealed)) !== sha256) throw new StoredRequestLostError('The request was changed');
    const bytes = await this.unseal(sealed);
    const end = LENGTH_BYTES + bytes.readUInt32BE();
    const { mediaType, ...texts } = JSON.parse(bytes.toString('utf8', LENGTH_BYTES, end));
    return { ...texts, image: mediaType === undefined ? undefined : { mediaType, bytes: bytes.subarray(end) } };
  }

  private async unseal(sealed: Buffer): Promise<Buffer> {
    try {
      return await this.secrets.openBytes(sealed);
    } catch (cause) {
      throw new StoredRequestLostError('The request was sealed with another master key', { cause });
    }
  }
}

async function toSha256(bytes: Uint8Array): Promise<string> {
  const digest = createHash('sha256');
  for await (const section of divide(bytes)) digest.update(section);
  return digest.digest('hex');
}
