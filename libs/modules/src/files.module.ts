import path from 'node:path';
import { Module } from '@nestjs/common';
import { Clock, Downloads, FileStore, FilesUnavailable, LinkSigner, Secrets } from '#application';
import { HttpDownloads, LocalFiles } from '#connectors';
import { StartError } from '#infra';
import { Role } from './role.ts';
import { SecretsModule } from './secrets.module.ts';
import { StoresModule } from './stores.module.ts';

/** Files that are kept for a while, the signatures that open them, and files of others. */
@Module({
  imports: [SecretsModule, StoresModule],
  providers: [
    {
      provide: LinkSigner,
      inject: [Secrets, Clock],
      useFactory: (secrets: Secrets, clock: Clock) => new LinkSigner(secrets, clock),
    },
    {
      provide: Downloads,
      inject: [Role],
      useFactory: ({ settings }: Role) => new HttpDownloads({ ...settings, admitted: settings.privateSources }),
    },
    { provide: FileStore, inject: [Role], useFactory: async (role: Role) => role.keep(await openFileStore(role)) },
  ],
  exports: [Downloads, FileStore, LinkSigner],
})
export class FilesModule {}

async function openFileStore({ settings }: Role): Promise<FileStore> {
  const { filesDir = path.join(settings.dataDir, 'files') } = settings;
  try {
    return await LocalFiles.open(filesDir);
  } catch (error) {
    if (!(error instanceof FilesUnavailable)) throw error;
    throw new StartError(`The directory of files ${filesDir} cannot be used: ${(error.cause as Error).message}.`);
  }
}
