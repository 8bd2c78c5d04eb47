import { Module } from '@nestjs/common';
import { Secrets } from '#application';
import { readMasterKey } from '#infra';
import { Role } from './role.ts';

/** For roles that read or write secrets; only they need the master key. */
@Module({
  providers: [
    {
      provide: Secrets,
      inject: [Role],
      useFactory: async ({ settings }: Role) => new Secrets(await readMasterKey(settings)),
    },
  ],
  exports: [Secrets],
})
export class SecretsModule {}
