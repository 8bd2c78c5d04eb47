/** Pictures that requests bring, and pictures that vendors have made: fetched within bounds, and known by their content. */
import { openAsBlob } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../clock.ts';
import { InvalidRequestError, toUpstreamError, UpstreamError } from '../../errors.ts';
import type { GeneratedFile, SourceImage } from '../../providers/media-calls.ts';
import { isDataUri, parseDataUri } from '../data-uri.ts';
import { type Download, DownloadError, type Downloader } from '../downloads.ts';
import { type FileStore, generateFileId } from '../file-store.ts';
import { MAX_LINK_LIFETIME_MS, type MediaLinks } from '../media-links.ts';
import { isCompleteImage } from './complete-image.ts';

/** A picture of 4,096 × 4,096 pixels as a PNG has some 30 MiB; an upscaled one more. */
const MAX_MADE_BYTES = 64 * 1024 * 1024;
const MAX_SOURCE_BYTES = 25 * 1024 * 1024;
const FETCH_WITHIN_MS = 60_000;
const MADE_TRIES = 3;
const KEPT_AGAIN_MS = 30_000;
const WAIT_MS = 200;

/** What is taken, and what is handed out. */
const PICTURES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp']);
const NO_PICTURE = 'must be a picture: PNG, JPEG or WebP';

/** A picture under an address that opens it for a day. */
export interface StoredImage {
  readonly mediaType: string;
  readonly url: string;
}

/** A file that came with a request, on this machine's disk. */
export interface UploadedImage {
  /** By its content; undefined where that is not known. */
  readonly mediaType: string | undefined;
  readonly path: string;
}

export interface UploadedImages {
  readonly image: UploadedImage;
  readonly mask?: UploadedImage | undefined;
}

/** What an `image_url` stands for: there already, or to be had. */
export type LoadImageSource = (signal: AbortSignal) => Promise<{ readonly image?: SourceImage }>;

/** The same, or files that came with a request. These stay on the disk. */
export type LoadImageInputs = (signal: AbortSignal) => Promise<{ readonly image?: Blob; readonly mask?: Blob }>;

interface Ports {
  readonly downloads: Downloader;
  readonly store: FileStore;
  readonly links: MediaLinks;
  readonly clock: Clock;
  /** What a picture is by its content; undefined where it is none, or one that nobody should unpack. */
  pictureTypeOf(bytes: Uint8Array): Promise<string | undefined>;
}

export class ImageFiles {
  /** Milliseconds since 1970. */
  private unkeptUntil = 0;

  constructor(private readonly ports: Ports) {}

  /**
   * What a request brings: an `image_url`, or files that came with it.
   * @throws InvalidRequestError 400 for what is none
   */
  async pictures(brought: string | UploadedImages | undefined): Promise<LoadImageInputs> {
    if (typeof brought === 'object') return uploaded(brought);
    const sources = await this.sources(brought);
    return async (signal) => {
      const { image } = await sources(signal);
      return image ? { image: new Blob([image.bytes as Uint8Array<ArrayBuffer>], { type: image.mediaType }) } : {};
    };
  }

  /**
   * What an address names is fetched once that is paid for; what is there already is read, and refused, at once.
   * @throws InvalidRequestError 400
   */
  async sources(brought: string | undefined): Promise<LoadImageSource> {
    if (brought === undefined) return async () => ({});
    if (/^https?:\/\//i.test(brought)) return async (signal) => ({ image: await this.fetched(brought, signal) });
    if (!isDataUri(brought))
      throw new InvalidRequestError(400, 'image_url must be an http(s) address or a data URI in base64', 'image_url');
    const image = await this.picture(bytesIn(brought));
    if (!image) throw notAPicture('image_url');
    return async () => ({ image });
  }

  /**
   * What a vendor has made, at once: its addresses do not last.
   * @returns undefined when it cannot be had, or is no picture
   */
  async made(upstream: string, file: GeneratedFile, signal: AbortSignal): Promise<SourceImage | undefined> {
    if (file.kind === 'bytes') return file.bytes.length > MAX_MADE_BYTES ? undefined : this.whole(file.bytes);
    const limits = { maxBytes: MAX_MADE_BYTES, timeoutMs: FETCH_WITHIN_MS, signal };
    for (let left = MADE_TRIES; left > 0 && !signal.aborted; left--) {
      try {
        return await this.whole(await bytesOf(await this.ports.downloads.ofVendor(upstream, file, limits)));
      } catch (error) {
        if (!(error instanceof DownloadError) || error.reason !== 'failed') return undefined;
        await delay(WAIT_MS, undefined, { signal }).catch(() => {}); // an abort ends the loop
      }
    }
    return undefined;
  }

  /** The pictures of one request. */
  async kept(made: readonly SourceImage[]): Promise<readonly StoredImage[]> {
    const { store, links, clock } = this.ports;
    const until = clock.milliseconds() + MAX_LINK_LIFETIME_MS;
    const id = generateFileId('gen', until);
    await Promise.all(made.map(({ mediaType, bytes }, n) => store.keep({ id, n, mediaType, bytes }))).catch((cause) => {
      this.unkeptUntil = clock.milliseconds() + KEPT_AGAIN_MS;
      throw this.cannotKeep(cause);
    });
    return made.map(({ mediaType }, n) => ({ mediaType, url: links.file(id, n, until) }));
  }

  /**
   * What cannot be kept is not bought: the house would pay for it each time. Now and then one request finds out whether it can
   * be kept again.
   * @throws UpstreamError
   */
  assertKept(): void {
    if (this.ports.clock.milliseconds() < this.unkeptUntil) throw this.cannotKeep();
  }

  private cannotKeep(cause?: unknown): UpstreamError {
    const retryAfterSeconds = KEPT_AGAIN_MS / 1_000;
    return new UpstreamError('upstream_unavailable', 'Images cannot be kept at the moment', {
      cause,
      retryAfterSeconds,
    });
  }

  /** @throws UpstreamError, since it is paid for by then */
  private async fetched(url: string, signal: AbortSignal): Promise<SourceImage> {
    try {
      const limits = { maxBytes: MAX_SOURCE_BYTES, timeoutMs: FETCH_WITHIN_MS, signal };
      const image = await this.picture(await bytesOf(await this.ports.downloads.ofCustomer(url, limits)));
      if (image) return image;
    } catch (error) {
      if (signal.aborted) throw toUpstreamError(signal.reason);
      if (!(error instanceof DownloadError)) throw error;
      throw new UpstreamError('invalid_request', `image_url: ${error.message}`, { param: 'image_url' });
    }
    throw new UpstreamError('invalid_request', `image_url ${NO_PICTURE}`, { param: 'image_url' });
  }

  private async whole(bytes: Uint8Array): Promise<SourceImage | undefined> {
    const image = await this.picture(bytes);
    return image && isCompleteImage(image) ? image : undefined;
  }

  private async picture(bytes: Uint8Array): Promise<SourceImage | undefined> {
    const mediaType = await this.ports.pictureTypeOf(bytes);
    return isPicture(mediaType) ? { mediaType, bytes } : undefined;
  }
}

function isPicture(mediaType: string | undefined): mediaType is string {
  return mediaType !== undefined && PICTURES.has(mediaType);
}

function notAPicture(field: string): InvalidRequestError {
  return new InvalidRequestError(400, `${field} ${NO_PICTURE}`, field);
}

/** @throws InvalidRequestError 400 */
function bytesIn(uri: string): Uint8Array {
  try {
    return parseDataUri(uri, MAX_SOURCE_BYTES).bytes;
  } catch (error) {
    if (!(error instanceof DownloadError)) throw error;
    throw new InvalidRequestError(400, `image_url: ${error.message}`, 'image_url');
  }
}

function uploaded({ image, mask }: UploadedImages): LoadImageInputs {
  for (const [field, file] of Object.entries({ image, mask }))
    if (file && !isPicture(file.mediaType)) throw notAPicture(field);
  return async () => ({ image: await onDisk(image), ...(mask ? { mask: await onDisk(mask) } : {}) });
}

function onDisk({ mediaType = '', path }: UploadedImage): Promise<Blob> {
  return openAsBlob(path, { type: mediaType });
}

async function bytesOf({ bytes }: Download): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces);
}
