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
      useFactory: (...dependencies: ConstructorParameters<typeof WalletConnector>) =>
        new WalletConnector(...dependencies),
    },
    ConnectWalletHandler,
    DisconnectWalletHandler,
  ],
})
export class AutoTopupModule {}
