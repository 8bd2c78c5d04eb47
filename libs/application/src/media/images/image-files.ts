/** Images in requests, and generated images: fetched within limits. Their types are detected from the content. */
import { openAsBlob } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { type Runtime, retry } from '#kernel';
import type { Clock } from '../../clock.ts';
import { DownloadError, type Downloader } from '../../downloads.ts';
import { InvalidRequestError, toUpstreamError, UpstreamError } from '../../errors.ts';
import type { GeneratedFile, SourceImage } from '../../providers/media-calls.ts';
import { toBlob } from '../blob.ts';
import { isDataUri, parseDataUri } from '../data-uri.ts';
import { type FileName, type FileStore, generateFileId } from '../file-store.ts';
import { MAX_LINK_LIFETIME_MS, type MediaLinks } from '../media-links.ts';
import { isCompleteImage } from './complete-image.ts';

/** A PNG of 4,096 × 4,096 pixels has about 30 MiB; an upscaled image has more. */
const MAX_GENERATED_BYTES = 64 * 1024 * 1024;
const MAX_SOURCE_BYTES = 25 * 1024 * 1024;
const FETCH_TIMEOUT_MS = 60_000;
const MAX_FETCH_ATTEMPTS = 3;
const FETCH_BACKOFF = { minMs: 200, maxMs: 200 };
const STORE_RETRY_MS = 30_000;

/** The image types that requests may contain and responses have. */
const IMAGE_TYPES: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/webp']);
const NOT_AN_IMAGE = 'must be an image: PNG, JPEG or WebP';

/** A stored image, and the URL that opens it for a day. */
export interface StoredImage {
  readonly mediaType: string;
  readonly url: string;
  readonly file: FileName;
}

/** A file that was uploaded with a request, on the disk of this host. */
export interface UploadedImage {
  /** The name of the field with the file. */
  readonly field: string;
  /** Detected from the content; undefined if unknown. */
  readonly mediaType: string | undefined;
  readonly path: string;
}

export interface UploadedImages {
  readonly image: UploadedImage;
  readonly mask?: UploadedImage | undefined;
}

/** Loads the image of an `image_url`, which is decoded already or has to be downloaded. */
export type LoadImageSource = (signal: AbortSignal) => Promise<{ readonly image?: SourceImage }>;

/** Loads the images of a request: an `image_url`, or uploaded files, which stay on the disk. */
export type LoadImageInputs = (signal: AbortSignal) => Promise<{ readonly image?: Blob; readonly mask?: Blob }>;

interface ImageFilesDependencies {
  readonly downloads: Downloader;
  readonly store: FileStore;
  readonly links: MediaLinks;
  readonly clock: Clock;
  readonly runtime: Runtime;
  /**
   * Detects the type of an image from its content.
   * @returns undefined if it is not an image, or is dangerous to decode
   */
  detectImageType(bytes: Uint8Array): Promise<string | undefined>;
}

export class ImageFiles {
  /** Milliseconds since 1970. */
  private unavailableUntil = 0;

  constructor(private readonly dependencies: ImageFilesDependencies) {}

  /**
   * Prepares the images of a request: an `image_url`, or uploaded files.
   * @throws InvalidRequestError 400 if a file or data URI is not an image, or `image_url` is not a supported URL
   */
  async prepareInputs(imageInput: string | UploadedImages | undefined): Promise<LoadImageInputs> {
    if (typeof imageInput === 'object') return toImageInputs(imageInput);
    const sources = await this.prepareSources(imageInput);
    return async (signal) => {
      const { image } = await sources(signal);
      return image ? { image: await toBlob(image) } : {};
    };
  }

  /**
   * Prepares an `image_url` or an uploaded image. An http(s) URL is downloaded and a file is read after money is held.
   * A data URI is decoded at once.
   * @throws InvalidRequestError 400 unless it is an http(s) URL, or the data URI or file of an image
   */
  async prepareSources(imageUrl: string | UploadedImage | undefined): Promise<LoadImageSource> {
    if (imageUrl === undefined) return async () => ({});
    if (typeof imageUrl === 'object') {
      const { mediaType, field, path } = imageUrl;
      if (!isImageType(mediaType)) throw notAnImageError(field);
      return async () => ({ image: { mediaType, bytes: await readFile(path) } });
    }
    if (/^https?:\/\//i.test(imageUrl)) return async (signal) => ({ image: await this.fetchSource(imageUrl, signal) });
    if (!isDataUri(imageUrl))
      throw new InvalidRequestError(400, 'image_url must be an http(s) URL or a data URI in base64', 'image_url');
    const image = await this.parseImage(await decodeImageUri(imageUrl));
    if (!image) throw notAnImageError('image_url');
    return async () => ({ image });
  }

  /**
   * Fetches a generated image. Must be called at once, because the URLs of providers expire.
   * @returns undefined if it cannot be fetched, or is not a complete image
   */
  async fetchGenerated(upstream: string, file: GeneratedFile, signal: AbortSignal): Promise<SourceImage | undefined> {
    if (file.kind === 'bytes')
      return file.bytes.length > MAX_GENERATED_BYTES ? undefined : this.parseCompleteImage(file.bytes);
    const { downloads, runtime } = this.dependencies;
    const limits = { maxBytes: MAX_GENERATED_BYTES, timeoutMs: FETCH_TIMEOUT_MS, signal };
    const fetchOnce = async () => {
      const { bytes } = await downloads.fetchProviderFile(upstream, file, limits);
      return this.parseCompleteImage(await buffer(bytes));
    };
    if (signal.aborted) return undefined;
    return retry(fetchOnce, {
      ...FETCH_BACKOFF,
      chance: runtime.chance,
      sleep: (milliseconds) => runtime.sleep(milliseconds, { signal }),
      shouldContinue: () => !signal.aborted,
      shouldRetry: (error, { attempt }) =>
        attempt < MAX_FETCH_ATTEMPTS && error instanceof DownloadError && error.reason === 'failed',
    }).catch((error) => {
      // The provider invoices the image whatever the reason is. The caller bills its cost, which the operator absorbs.
      if (!signal.aborted) runtime.reportError(`an image that ${upstream} has generated could not be fetched`, error);
      return undefined;
    });
  }

  /** Stores the images of one request. @throws UpstreamError if they cannot be stored */
  async storeImages(images: readonly SourceImage[]): Promise<readonly StoredImage[]> {
    const { store, links, clock, runtime } = this.dependencies;
    const until = clock.nowMs() + MAX_LINK_LIFETIME_MS;
    const id = generateFileId(runtime, 'gen', until);
    await Promise.all(images.map(({ mediaType, bytes }, n) => store.save({ id, n, mediaType, bytes }))).catch(
      (cause) => {
        this.unavailableUntil = clock.nowMs() + STORE_RETRY_MS;
        throw this.createStoreError(cause);
      },
    );
    return images.map(({ mediaType }, n) => ({
      mediaType,
      url: links.createFileUrl(id, n, until),
      file: { id, n },
    }));
  }

  /**
   * Rejects requests while images cannot be stored: the operator would absorb the cost of each. After a pause, requests
   * find out whether images can be stored again.
   * @throws UpstreamError
   */
  assertStoreAvailable(): void {
    if (this.dependencies.clock.nowMs() < this.unavailableUntil) throw this.createStoreError();
  }

  private createStoreError(cause?: unknown): UpstreamError {
    const retryAfterSeconds = STORE_RETRY_MS / 1_000;
    return new UpstreamError('upstream_unavailable', 'Images cannot be stored at the moment; retry later', {
      cause,
      retryAfterSeconds,
    });
  }

  /** @throws UpstreamError and not InvalidRequestError, because money is held by then */
  private async fetchSource(url: string, signal: AbortSignal): Promise<SourceImage> {
    try {
      const limits = { maxBytes: MAX_SOURCE_BYTES, timeoutMs: FETCH_TIMEOUT_MS, signal };
      const { bytes } = await this.dependencies.downloads.fetchCustomerUrl(url, limits);
      const image = await this.parseImage(await buffer(bytes));
      if (image) return image;
    } catch (error) {
      if (signal.aborted) throw toUpstreamError(signal.reason);
      if (!(error instanceof DownloadError)) throw error;
      throw new UpstreamError('invalid_request', `image_url: ${error.message}`, { param: 'image_url' });
    }
    throw new UpstreamError('invalid_request', `image_url ${NOT_AN_IMAGE}`, { param: 'image_url' });
  }

  private async parseCompleteImage(bytes: Uint8Array): Promise<SourceImage | undefined> {
    const image = await this.parseImage(bytes);
    return image && isCompleteImage(image) ? image : undefined;
  }

  private async parseImage(bytes: Uint8Array): Promise<SourceImage | undefined> {
    const mediaType = await this.dependencies.detectImageType(bytes);
    return isImageType(mediaType) ? { mediaType, bytes } : undefined;
  }
}

function isImageType(mediaType: string | undefined): mediaType is string {
  return mediaType !== undefined && IMAGE_TYPES.has(mediaType);
}

function notAnImageError(field: string): InvalidRequestError {
  return new InvalidRequestError(400, `${field} ${NOT_AN_IMAGE}`, field);
}

/** @throws InvalidRequestError 400 */
async function decodeImageUri(uri: string): Promise<Uint8Array> {
  try {
    return (await parseDataUri(uri, MAX_SOURCE_BYTES)).bytes;
  } catch (error) {
    if (!(error instanceof DownloadError)) throw error;
    throw new InvalidRequestError(400, `image_url: ${error.message}`, 'image_url');
  }
}

function toImageInputs({ image, mask }: UploadedImages): LoadImageInputs {
  for (const file of [image, mask]) if (file && !isImageType(file.mediaType)) throw notAnImageError(file.field);
  return async () => ({ image: await openBlob(image), ...(mask ? { mask: await openBlob(mask) } : {}) });
}

function openBlob({ mediaType = '', path }: UploadedImage): Promise<Blob> {
  return openAsBlob(path, { type: mediaType });
}
