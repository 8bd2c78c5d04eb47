import { Module } from '@nestjs/common';
import { Secrets } from '#application';
import { readMasterKeys } from '#infra';
import { Role } from './role.ts';

/** For roles that read or write secrets; only they need the master key. */
@Module({
  providers: [{ provide: Secrets, inject: [Role], useFactory: openSecrets }],
  exports: [Secrets],
})
export class SecretsModule {}

async function openSecrets({ settings }: Role): Promise<Secrets> {
  const [masterKey, ...others] = await readMasterKeys(settings);
  return new Secrets(masterKey as Buffer, others);
}
