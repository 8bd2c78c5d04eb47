import { Module } from '@nestjs/common';
import {
  AutoTopupLimits,
  ConnectWalletHandler,
  DisconnectWalletHandler,
  OfferedPayments,
  WalletAgreements,
  Wallets,
} from '#application';
import { PaymentsModule, SecretsModule, StoresModule, StreamsModule, WalletsModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';
import { AutoTopupController } from './auto-topup.controller.ts';

/** Wallets that top up accounts by themselves. */
@Module({
  imports: [EdgeModule, PaymentsModule, SecretsModule, StoresModule, StreamsModule, WalletsModule],
  controllers: [AutoTopupController],
  providers: [
    {
      provide: WalletAgreements,
      inject: [Wallets, OfferedPayments, AutoTopupLimits],
      useFactory: (...ports: ConstructorParameters<typeof WalletAgreements>) => new WalletAgreements(...ports),
    },
    ConnectWalletHandler,
    DisconnectWalletHandler,
  ],
})
export class AutoTopupModule {}
