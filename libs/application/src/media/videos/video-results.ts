/** What a vendor has made: fetched, checked and kept. */
import type { GeneratedFile } from '../../providers/media-calls.ts';
import { DownloadError, type Downloader, type DownloadLimits } from '../downloads.ts';
import type { FileStore } from '../file-store.ts';

const MAX_BYTES = 512 * 1024 * 1024;
const TIMEOUT_MS = 5 * 60_000;
/** What is known of a file by so many bytes is what it is. */
const HEAD_BYTES = 4_100;
const VIDEO_TYPES: ReadonlySet<string> = new Set(['video/mp4', 'video/webm']);

/** The vendor has no video for us. */
export class VideoFetchError extends Error {
  override readonly name = 'VideoFetchError';

  constructor(
    message: string,
    /** It would be the same again. */
    readonly isFinal: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface StoredVideo {
  readonly mediaType: string;
  readonly size: number;
}

/** Fetches videos. Done again, the same is kept under the same id. */
export class VideoResults {
  constructor(
    private readonly files: FileStore,
    private readonly downloads: Downloader,
    /** What bytes are, by themselves. */
    private readonly detectMediaType: (head: Uint8Array) => Promise<string | undefined>,
  ) {}

  /** @throws VideoFetchError when it is the vendor's fault; anything else when the file store is away */
  async fetchAndStore(upstream: string, file: GeneratedFile, id: string, signal: AbortSignal): Promise<StoredVideo> {
    const bytes =
      file.kind === 'bytes' ? yieldOnce(file.bytes) : mapDownloadErrors(await this.download(upstream, file, signal));
    const { head, all } = await peekHead(bytes);
    const mediaType = await this.detectMediaType(head);
    if (mediaType === undefined || !VIDEO_TYPES.has(mediaType)) {
      await all.return?.(undefined);
      throw new VideoFetchError('What the vendor has made is no video', true);
    }
    return { mediaType, size: await this.files.save({ id, n: 0, mediaType, bytes: all }) };
  }

  private async download(upstream: string, file: Extract<GeneratedFile, { kind: 'address' }>, signal: AbortSignal) {
    const limits: DownloadLimits = { maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS, signal };
    try {
      return (await this.downloads.fetchProviderFile(upstream, file, limits)).bytes;
    } catch (error) {
      throw toVideoFetchError(error);
    }
  }
}

async function* yieldOnce(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function* mapDownloadErrors(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes;
  } catch (error) {
    throw toVideoFetchError(error);
  }
}

function toVideoFetchError(error: unknown): unknown {
  if (!(error instanceof DownloadError)) return error;
  return new VideoFetchError(error.message, error.reason !== 'failed', { cause: error });
}

/** The first bytes, and all of them once more. */
async function peekHead(bytes: AsyncGenerator<Uint8Array>) {
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (size < HEAD_BYTES) {
    const { done, value } = await bytes.next();
    if (done) break;
    chunks.push(value);
    size += value.length;
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      yield* chunks;
      yield* bytes;
    } finally {
      await bytes.return(undefined);
    }
  }
  return { head: Buffer.concat(chunks), all: all() };
}
