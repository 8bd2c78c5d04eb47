/** Fetches, checks and stores generated videos. */

import { DownloadError, type Downloader, type DownloadLimits } from '../../downloads.ts';
import type { GeneratedFile } from '../../providers/media-calls.ts';
import type { FileStore } from '../file-store.ts';

const MAX_BYTES = 512 * 1024 * 1024;
const TIMEOUT_MS = 5 * 60_000;
/** This many bytes are sufficient to detect the type of a file. */
const HEAD_BYTES = 4_100;
const VIDEO_TYPES: ReadonlySet<string> = new Set(['video/mp4', 'video/webm']);

/** The provider did not deliver a usable video. */
export class VideoFetchError extends Error {
  override readonly name = 'VideoFetchError';

  constructor(
    message: string,
    /** A retry would fail in the same way. */
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

/** Fetches and stores videos. A repeated call overwrites the video with the same id. */
export class VideoResults {
  constructor(
    private readonly files: FileStore,
    private readonly downloads: Downloader,
    /** Detects the media type from the first bytes. */
    private readonly detectMediaType: (head: Uint8Array) => Promise<string | undefined>,
  ) {}

  /** @throws VideoFetchError if the provider is the cause; any other error if the file store is unavailable */
  async fetchAndStore(upstream: string, file: GeneratedFile, id: string, signal: AbortSignal): Promise<StoredVideo> {
    const bytes =
      file.kind === 'bytes' ? yieldOnce(file.bytes) : mapDownloadErrors(await this.download(upstream, file, signal));
    const { head, all } = await peekHead(bytes);
    const mediaType = await this.detectMediaType(head);
    if (mediaType === undefined || !VIDEO_TYPES.has(mediaType)) {
      await all.return?.(undefined);
      throw new VideoFetchError('The generated file is not a video', true);
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

/** Returns the first bytes, and an iterator over all bytes from the start. */
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
