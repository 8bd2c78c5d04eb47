import type { S3Bucket } from '#connectors';
import type { BackupStore } from './backup-store.ts';

const MEDIA_TYPE = 'application/octet-stream';

/** Stores backups in a bucket of a service with the S3 API. */
export class BucketStore implements BackupStore {
  constructor(private readonly bucket: S3Bucket) {}

  async list(): Promise<readonly string[]> {
    const keys: string[] = [];
    for await (const page of this.bucket.listKeys()) keys.push(...page);
    return keys;
  }

  async write(key: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    await this.bucket.upload(key, MEDIA_TYPE, content);
  }

  read(key: string): AsyncIterable<Uint8Array> {
    return this.bucket.read(key);
  }

  remove(keys: readonly string[]): Promise<void> {
    return this.bucket.remove(keys);
  }

  close(): void {
    this.bucket.close();
  }
}
