import { setTimeout as delay } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Module } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import { Paying } from '#application';
import { Role } from '#modules';
import { AccountsModule } from './accounts/accounts.module.ts';
import { AutoTopupModule } from './autotopup/auto-topup.module.ts';
import { ChargesModule } from './charges/charges.module.ts';
import { DataModule } from './data/data.module.ts';
import { EdgeModule } from './edge/edge.module.ts';
import { RunningRequests } from './edge/running-requests.ts';
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
    DocsModule,
  ],
})
export class GatewayModule implements BeforeApplicationShutdown {
  constructor(
    private readonly role: Role,
    private readonly paying: Paying,
    private readonly running: RunningRequests,
    private readonly host: HttpAdapterHost,
  ) {}

  /**
   * Says that it wants no more traffic, and serves until balancers have noticed; then takes no new connections, and finishes
   * what runs, or settles it as it is when its time is over.
   */
  async beforeApplicationShutdown(): Promise<void> {
    const { drainDelayMs, totalTimeoutMs, shutdownTimeoutMs = totalTimeoutMs } = this.role.settings;
    this.running.leave();
    await delay(drainDelayMs);
    const { httpAdapter } = this.host;
    const closed = httpAdapter.close();
    // What its client has left is no request any more, and is paid for nevertheless.
    await Promise.all([this.paying.drain(shutdownTimeoutMs), this.running.over(shutdownTimeoutMs)]);
    const leave = setTimeout(() => httpAdapter.getHttpServer().closeAllConnections(), LINGER_MS);
    await closed;
    clearTimeout(leave);
  }
}
