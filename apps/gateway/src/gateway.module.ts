import { type BeforeApplicationShutdown, Module } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import { Paying } from '#application';
import { Readiness, Role, StoresModule } from '#modules';
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
import { TopupsModule } from './topups/topups.module.ts';

/** How long clients may keep a connection open after the last answer. */
const LINGER_MS = 1_000;

/** The HTTP gateway: a module for each surface. */
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
    StoresModule,
    DocsModule,
  ],
})
export class GatewayModule implements BeforeApplicationShutdown {
  constructor(
    private readonly role: Role,
    private readonly readiness: Readiness,
    private readonly paying: Paying,
    private readonly host: HttpAdapterHost,
  ) {}

  /** Wants no more traffic, takes no new connections, and finishes or settles what runs. */
  async beforeApplicationShutdown(): Promise<void> {
    this.readiness.draining = true;
    const { httpAdapter } = this.host;
    const closed = httpAdapter.close();
    await this.paying.drain(this.role.settings.shutdownTimeoutMs);
    const leave = setTimeout(() => httpAdapter.getHttpServer().closeAllConnections(), LINGER_MS);
    await closed;
    clearTimeout(leave);
  }
}
