/** Stores objects in a bucket of a service with the S3 API. */
import { Readable } from 'node:stream';
import type * as Aws from '@aws-sdk/client-s3';
import {
  type ByteRange,
  createCredentialError,
  FileStoreUnavailableError,
  NO_SERVICE_MONITOR,
  type ServiceMonitor,
} from '#application';

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export interface S3Options {
  readonly bucket: string;
  /** Undefined for the endpoint of AWS in the region. */
  readonly endpoint?: string | undefined;
  readonly region: string;
  /**
   * Read for each request. Undefined for the default credentials of the AWS library, such as those of the role of the
   * host.
   */
  readonly credentials?: S3Credentials | undefined;
  /**
   * Objects above this size are uploaded in parts of this size, except for the last part. Each part is in memory while it
   * is sent.
   */
  readonly partBytes?: number;
  /** Gets what the responses show about the credentials. */
  readonly monitor?: ServiceMonitor;
}

/**
 * S3 accepts parts of at least 5 MiB, except for the last one, and at most 10,000 parts:
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
 */
const PART_BYTES = 8 * 1024 * 1024;
const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 60_000;
const DELETE_CONCURRENCY = 8;

/** Every method throws FileStoreUnavailableError if the bucket cannot be used. */
export class S3Bucket {
  private readonly bucket: { readonly Bucket: string };
  private readonly partBytes: number;

  private constructor(
    private readonly aws: typeof Aws,
    private readonly client: Aws.S3Client,
    { bucket, partBytes = PART_BYTES }: S3Options,
  ) {
    this.bucket = { Bucket: bucket };
    this.partBytes = partBytes;
  }

  /** Loads the AWS library only here, because loading it is slow. */
  static async open(options: S3Options): Promise<S3Bucket> {
    const aws = await import('@aws-sdk/client-s3');
    const { endpoint, region, credentials, bucket, monitor = NO_SERVICE_MONITOR } = options;
    const client = new aws.S3Client({
      region,
      forcePathStyle: true,
      // Some services other than AWS do not support the checksums that the library adds by default.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: IDLE_TIMEOUT_MS },
      ...(endpoint ? { endpoint } : {}),
      ...(credentials ? { credentials: async () => toExpiredCredentials(credentials) } : {}),
    });
    client.middlewareStack.add(
      (next) => async (command) => {
        try {
          const result = await next(command);
          monitor.recordSuccess();
          return result;
        } catch (error) {
          if (isCredentialError(error as S3Error))
            monitor.recordFailure(createCredentialError('S3 is unavailable', 403));
          throw error;
        }
      },
      { step: 'initialize', name: 'monitorCredentials' },
    );
    const resource = new S3Bucket(aws, client, options);
    try {
      await withUnavailableErrors(() => client.send(new aws.HeadBucketCommand({ Bucket: bucket })));
      return resource;
    } catch (error) {
      resource.close();
      throw error;
    }
  }

  /** The object appears only after its upload is complete. @returns its size in bytes */
  async upload(
    Key: string,
    ContentType: string,
    chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  ): Promise<number> {
    let size = 0;
    let sourceFailure: { readonly error: unknown } | undefined;
    const readSource = async function* () {
      try {
        for await (const chunk of chunks) {
          size += chunk.byteLength;
          yield chunk;
        }
      } catch (error) {
        sourceFailure = { error };
        throw error;
      }
    };
    const { Upload } = await import('@aws-sdk/lib-storage');
    const params = { ...this.bucket, Key, ContentType, Body: Readable.from(readSource()) };
    try {
      await new Upload({ client: this.client, params, partSize: this.partBytes, queueSize: 1 }).done();
      return size;
    } catch (cause) {
      // If the abort of the upload fails as well, the library throws only that. A lifecycle rule, which the bucket needs,
      // aborts unfinished uploads.
      throw sourceFailure ? sourceFailure.error : new FileStoreUnavailableError(cause);
    }
  }

  /** @returns undefined if there is no such object; `size` in bytes */
  async find(Key: string): Promise<{ readonly mediaType: string; readonly size: number } | undefined> {
    const head = await withUnavailableErrors(() =>
      this.client.send(new this.aws.HeadObjectCommand({ ...this.bucket, Key })).catch(ignoreMissing),
    );
    return head && { mediaType: head.ContentType ?? '', size: head.ContentLength ?? 0 };
  }

  async *read(Key: string, range?: ByteRange): AsyncIterable<Uint8Array> {
    const Range = range && `bytes=${range.start}-${range.end}`;
    const command = new this.aws.GetObjectCommand({ ...this.bucket, Key, ...(Range ? { Range } : {}) });
    const { Body, ContentRange } = await withUnavailableErrors(() => this.client.send(command));
    try {
      const chunks = Body as Readable;
      // Some services send the complete object if the range is its first byte.
      const isUnranged = range && !ContentRange?.startsWith(`bytes ${range.start}-${range.end}/`);
      yield* isUnranged ? sliceStream(chunks, range) : chunks;
    } catch (cause) {
      throw new FileStoreUnavailableError(cause);
    } finally {
      (Body as Readable).destroy();
    }
  }

  /** Yields the keys in alphabetical order, a page at a time. */
  async *listKeys(Prefix = ''): AsyncIterable<readonly string[]> {
    const { aws, client, bucket } = this;
    const pages = aws.paginateListObjectsV2({ client }, { ...bucket, Prefix })[Symbol.asyncIterator]();
    for (;;) {
      const { value, done } = await withUnavailableErrors(() => pages.next());
      if (done) return;
      yield (value.Contents ?? []).map(({ Key = '' }) => Key);
    }
  }

  /**
   * Deletes each object with its own request. A bulk deletion needs a checksum that not all services compute in the
   * same way.
   */
  async remove(keys: readonly string[]): Promise<void> {
    const { aws, client, bucket } = this;
    const removeObject = (Key: string) => client.send(new aws.DeleteObjectCommand({ ...bucket, Key }));
    await withUnavailableErrors(async () => {
      for (let at = 0; at < keys.length; at += DELETE_CONCURRENCY)
        await Promise.all(keys.slice(at, at + DELETE_CONCURRENCY).map(removeObject));
    });
  }

  close(): void {
    this.client.destroy();
  }
}

/** The library requests expired credentials again at the next request. */
function toExpiredCredentials({ accessKeyId, secretAccessKey }: S3Credentials) {
  return { accessKeyId, secretAccessKey, expiration: new Date() };
}

async function* sliceStream(chunks: AsyncIterable<Uint8Array>, { start, end }: ByteRange): AsyncIterable<Uint8Array> {
  let at = 0;
  for await (const chunk of chunks) {
    const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end + 1 - at));
    if (part.length > 0) yield part;
    at += chunk.length;
    if (at > end) return;
  }
}

interface S3Error {
  readonly name?: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
}

/** The session of temporary credentials has ended, or is not of these credentials. The status is 400. */
const TOKEN_ERRORS: ReadonlySet<string | undefined> = new Set(['ExpiredToken', 'InvalidToken']);

/** Whether the credentials are unknown or lack a permission. The clock of the host is no part of them. */
function isCredentialError({ name, $metadata }: S3Error): boolean {
  const status = $metadata?.httpStatusCode;
  return TOKEN_ERRORS.has(name) || ((status === 401 || status === 403) && name !== 'RequestTimeTooSkewed');
}

function ignoreMissing(error: S3Error): undefined {
  if (error.$metadata?.httpStatusCode !== 404) throw error;
}

async function withUnavailableErrors<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    throw cause instanceof FileStoreUnavailableError ? cause : new FileStoreUnavailableError(cause);
  }
}
