import { Module } from '@nestjs/common';
import {
  AutoTopupLimits,
  ConnectWalletHandler,
  DisconnectWalletHandler,
  PaymentMethods,
  WalletConnector,
  Wallets,
} from '#application';
import { PaymentsModule, SecretsModule, StoresModule, StreamsModule, WalletsModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';
import { AutoTopupController } from './auto-topup.controller.ts';

@Module({
  imports: [EdgeModule, PaymentsModule, SecretsModule, StoresModule, StreamsModule, WalletsModule],
  controllers: [AutoTopupController],
  providers: [
    {
      provide: WalletConnector,
      inject: [Wallets, PaymentMethods, AutoTopupLimits],
      useFactory: (wallets: Wallets, paymentMethods: PaymentMethods, limits: AutoTopupLimits) =>
        new WalletConnector(wallets, paymentMethods, limits),
    },
    ConnectWalletHandler,
    DisconnectWalletHandler,
  ],
})
export class AutoTopupModule {}
