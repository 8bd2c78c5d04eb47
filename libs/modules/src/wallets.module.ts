import { Module } from '@nestjs/common';
import { AutoTopupLimits, Wallets } from '#application';
import { NwcWallets } from '#connectors';
import { parseUsd } from '#kernel';
import { ProcessRole } from './role.ts';

/** Customers' wallets, and the daily limits of automatic top-ups. */
@Module({
  providers: [
    {
      provide: Wallets,
      inject: [ProcessRole],
      useFactory: (role: ProcessRole) =>
        role.closeOnExit(new NwcWallets({ allowedRelays: role.settings.privateRelays })),
    },
    {
      provide: AutoTopupLimits,
      inject: [ProcessRole],
      useFactory: ({ settings }: ProcessRole) =>
        new AutoTopupLimits(settings.autoTopupsPerDay, parseUsd(settings.autoTopupUsdPerDay)),
    },
  ],
  exports: [Wallets, AutoTopupLimits],
})
export class WalletsModule {}
