import path from 'node:path';
import { Module } from '@nestjs/common';
import { Clock, Downloader, FileStore, LinkSigner, OperatorProblems, Secrets } from '#application';
import { HttpDownloads, LocalFiles, S3Files } from '#connectors';
import { Foundation } from '#foundation';
import { toS3Options, toStartError } from './place-of-files.ts';
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
      inject: [ProcessRole, OperatorProblems, Foundation],
      useFactory: async (role: ProcessRole, problems: OperatorProblems, { startDeadline }: Foundation) =>
        role.closeOnExit(await startDeadline.waitFor('the store of files', () => openFileStore(role, problems))),
    },
  ],
  exports: [Downloader, FileStore, LinkSigner],
})
export class FilesModule {}

async function openFileStore({ settings }: ProcessRole, problems: OperatorProblems): Promise<FileStore> {
  const { s3Bucket, filesDir = path.join(settings.dataDir, 'files') } = settings;
  try {
    if (s3Bucket === undefined) return await LocalFiles.open(filesDir);
    const monitor = problems.createMonitor('s3', `the bucket ${s3Bucket}`, 'S3_ACCESS_KEY_ID');
    return await S3Files.open({ ...toS3Options(settings, s3Bucket), monitor });
  } catch (error) {
    const where = s3Bucket === undefined ? `The directory of files ${filesDir}` : `The bucket ${s3Bucket} (S3_BUCKET)`;
    throw toStartError(error, where);
  }
}
