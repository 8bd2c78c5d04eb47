import { Module } from '@nestjs/common';
import { Secrets } from '#application';
import { readMasterKey } from '#infra';
import { Role } from './role.ts';

/** Who reads or writes secrets. Only such roles need the master key. */
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
