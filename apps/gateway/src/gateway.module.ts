import { Module } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import { BillingEngine, PayerFactory } from '#application';
import { ConnectionGuard } from '#foundation';
import { injectByName, ProcessRole, Readiness } from '#modules';
import { AccountsModule } from './accounts/accounts.module.ts';
import { AutoTopupModule } from './autotopup/auto-topup.module.ts';
import { ChargesModule } from './charges/charges.module.ts';
import { DataModule } from './data/data.module.ts';
import { EdgeModule } from './edge/edge.module.ts';
import { HealthModule } from './health/health.module.ts';
import { InferenceModule } from './inference/inference.module.ts';
import { MediaModule } from './media/media.module.ts';
import { DocsModule } from './openapi/docs.module.ts';
import { PrivateModule } from './private/private.module.ts';
import { Shutdown } from './shutdown.ts';
import { TopupsModule } from './topups/topups.module.ts';

@Module({
  imports: [
    CqrsModule.forRoot(),
    EdgeModule,
    AccountsModule,
    TopupsModule,
    AutoTopupModule,
    InferenceModule,
    MediaModule,
    DataModule,
    PrivateModule,
    ChargesModule,
    HealthModule,
    DocsModule,
  ],
  providers: [
    injectByName(
      Shutdown,
      {
        role: ProcessRole,
        readiness: Readiness,
        connections: ConnectionGuard,
        billing: BillingEngine,
        payers: PayerFactory,
        host: HttpAdapterHost,
      },
      ({ role: { settings, log }, ...dependencies }) => new Shutdown({ settings, log, ...dependencies }),
    ),
  ],
})
export class GatewayModule {}
