import path from 'node:path';
import { Module } from '@nestjs/common';
import {
  Clock,
  Downloader,
  FileStore,
  FileStoreUnavailableError,
  LinkSigner,
  RejectedCredentials,
  Secrets,
} from '#application';
import { HttpDownloads, LocalFiles, S3Files } from '#connectors';
import { Foundation, isTransient, NotReadyError, StartError } from '#foundation';
import { ProcessRole } from './role.ts';
import { SecretsModule } from './secrets.module.ts';
import { StoresModule } from './stores.module.ts';

/** Temporary files, signed links to them, and downloads of external files. */
@Module({
  imports: [SecretsModule, StoresModule],
  providers: [
    {
      provide: LinkSigner,
      inject: [Secrets, Clock],
      useFactory: (secrets: Secrets, clock: Clock) => new LinkSigner(secrets, clock),
    },
    {
      provide: Downloader,
      inject: [ProcessRole],
      useFactory: ({ settings }: ProcessRole) =>
        new HttpDownloads({ ...settings, allowedOrigins: settings.privateSources }),
    },
    {
      provide: FileStore,
      // Depends on the foundation: an embedded database creates the data directory first, and reports problems with it.
      inject: [ProcessRole, RejectedCredentials, Foundation],
      useFactory: async (role: ProcessRole, rejected: RejectedCredentials, { startDeadline }: Foundation) =>
        role.closeOnExit(await startDeadline.waitFor('the store of files', () => openFileStore(role, rejected))),
    },
  ],
  exports: [Downloader, FileStore, LinkSigner],
})
export class FilesModule {}

async function openFileStore({ settings }: ProcessRole, rejected: RejectedCredentials): Promise<FileStore> {
  const { s3Bucket, filesDir = path.join(settings.dataDir, 'files') } = settings;
  try {
    if (s3Bucket === undefined) return await LocalFiles.open(filesDir);
    const monitor = rejected.createMonitor('s3', `the bucket ${s3Bucket}`, 'S3_ACCESS_KEY_ID');
    return await S3Files.open({ ...toS3Options(settings, s3Bucket), monitor });
  } catch (error) {
    if (!(error instanceof FileStoreUnavailableError)) throw error;
    const { name, message } = error.cause as Error;
    const where = s3Bucket === undefined ? `The directory of files ${filesDir}` : `The bucket ${s3Bucket} (S3_BUCKET)`;
    const sentence = `${where} cannot be used: ${message || name}`;
    throw isUnavailable(error.cause) ? new NotReadyError(sentence) : new StartError(`${sentence}.`);
  }
}

/** Whether a service did not respond, or responded that it cannot serve now. */
function isUnavailable(reason: unknown): boolean {
  const { name, $metadata: metadata } = reason as { name: string; $metadata?: { httpStatusCode?: number } };
  const { httpStatusCode: status = 0 } = metadata ?? {};
  return isTransient(reason) || name === 'TimeoutError' || status === 429 || status >= 500;
}

function toS3Options(
  { s3Endpoint, s3Region, s3AccessKeyId, s3SecretAccessKey }: ProcessRole['settings'],
  bucket: string,
) {
  const credentials =
    s3AccessKeyId !== undefined && s3SecretAccessKey !== undefined
      ? { accessKeyId: s3AccessKeyId, secretAccessKey: s3SecretAccessKey }
      : undefined;
  return { bucket, endpoint: s3Endpoint, region: s3Region, credentials };
}
