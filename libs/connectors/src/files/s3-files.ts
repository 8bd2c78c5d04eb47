/** Stores files in a bucket of a service with the S3 API. */
import { type FileName, FileStore, type FileToStore, type StoredFile } from '#application';
import { isFileNumber, isHourExpired, isHourName, resolveHourName, toHourName } from './names.ts';
import { S3Bucket, type S3Options } from './s3-bucket.ts';

/** Keys are `<hour>/<id>/<n>`, like the paths of `LocalFiles`. An object appears only after its upload is complete. */
export class S3Files extends FileStore {
  private constructor(private readonly bucket: S3Bucket) {
    super();
  }

  /** @throws FileStoreUnavailableError if the bucket cannot be used */
  static async open(options: S3Options): Promise<S3Files> {
    return new S3Files(await S3Bucket.open(options));
  }

  override async save({ id, n, mediaType, bytes }: FileToStore): Promise<number> {
    const key = `${resolveHourName(id, n, mediaType)}/${id}/${n}`;
    return this.bucket.upload(key, mediaType, bytes instanceof Uint8Array ? [bytes] : bytes);
  }

  override async find({ id, n }: FileName): Promise<StoredFile | undefined> {
    const hour = toHourName(id);
    if (hour === undefined || !isFileNumber(n)) return undefined;
    const key = `${hour}/${id}/${n}`;
    const object = await this.bucket.find(key);
    return object && { ...object, read: (range) => (object.size === 0 ? readNothing() : this.bucket.read(key, range)) };
  }

  override async remove(id: string): Promise<void> {
    const hour = toHourName(id);
    if (hour === undefined) return;
    for await (const keys of this.bucket.listKeys(`${hour}/${id}/`)) await this.bucket.remove(keys);
  }

  /** Keys are listed in order of time, so the listing stops at the first hour that has not started. */
  override async removeExpired(now: number): Promise<number> {
    const ids = new Set<string>();
    const getHour = (key: string) => key.split('/', 1)[0] ?? '';
    for await (const page of this.bucket.listKeys()) {
      const keys = page.filter((key) => isHourName(getHour(key)));
      const expiredKeys = keys.filter((key) => isHourExpired(getHour(key), now));
      await this.bucket.remove(expiredKeys);
      for (const key of expiredKeys) ids.add(key.split('/')[1] ?? '');
      if (expiredKeys.length < keys.length) break;
    }
    return ids.size;
  }

  override async close(): Promise<void> {
    this.bucket.close();
  }
}

async function* readNothing(): AsyncIterable<Uint8Array> {}
