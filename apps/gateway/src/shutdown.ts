import { setTimeout as delay } from 'node:timers/promises';
import type { BeforeApplicationShutdown } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import type { BillingEngine } from '#application';
import type { ConnectionGuard, Settings } from '#foundation';
import type { Readiness } from '#modules';

/** How long clients may keep a connection open after the last answer. */
const CLOSE_DELAY_MS = 1_000;

export interface ShutdownDependencies {
  readonly settings: Settings;
  readonly readiness: Readiness;
  readonly connections: ConnectionGuard;
  readonly billing: BillingEngine;
  readonly host: HttpAdapterHost;
}

/** How the gateway ends, without a request that fails for it. */
export class Shutdown implements BeforeApplicationShutdown {
  constructor(private readonly dependencies: ShutdownDependencies) {}

  /**
   * Says that it wants no more traffic, and serves until balancers have noticed; then takes no new connections, and finishes
   * what runs, or settles it as it is when its time is over.
   */
  async beforeApplicationShutdown(): Promise<void> {
    const { settings, readiness, connections, billing, host } = this.dependencies;
    const { drainDelayMs, totalTimeoutMs, shutdownTimeoutMs = totalTimeoutMs } = settings;
    readiness.isDraining = true;
    connections.startDraining();
    await delay(drainDelayMs);
    const { httpAdapter } = host;
    const closed = httpAdapter.close();
    // What its client has left is no request any more, and is paid for nevertheless.
    await Promise.all([billing.drain(shutdownTimeoutMs), connections.waitUntilIdle(shutdownTimeoutMs)]);
    const closeTimer = setTimeout(() => httpAdapter.getHttpServer().closeAllConnections(), CLOSE_DELAY_MS);
    await closed;
    clearTimeout(closeTimer);
  }
}
