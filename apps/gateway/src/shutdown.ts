import { setTimeout as delay } from 'node:timers/promises';
import type { BeforeApplicationShutdown } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import type { BillingEngine, PayerFactory } from '#application';
import { type ConnectionGuard, type Log, type Settings, waitForDrain } from '#foundation';
import type { Readiness } from '#modules';

/** How long connections may stay open after the last response or the shutdown timeout. */
const CLOSE_DELAY_MS = 1_000;
/** How long requests may take to end after they were aborted. A charge is confirmed or given up within 8 s. */
const ABORT_TIMEOUT_MS = 10_000;
/**
 * How long charges may take that the event store did not confirm in time: a server that was frozen stores them when it
 * resumes. A charge that only this process knows of is lost with it.
 */
const WRITE_TIMEOUT_MS = 15_000;
/** Maximum number of ids in a log line. */
const MAX_LOGGED_HOLDS = 20;

export interface ShutdownDependencies {
  readonly settings: Settings;
  readonly log: Log;
  readonly readiness: Readiness;
  readonly connections: ConnectionGuard;
  readonly billing: BillingEngine;
  readonly payers: Pick<PayerFactory, 'pendingWrites'>;
  readonly host: HttpAdapterHost;
}

/** Shuts the gateway down: waits for the drain delay, then for the requests in flight, up to the shutdown timeout. */
export class Shutdown implements BeforeApplicationShutdown {
  constructor(private readonly dependencies: ShutdownDependencies) {}

  /**
   * Reports that the process is not ready, and serves for the drain delay, in which load balancers notice this. Then
   * accepts no new connections and finishes the running requests. Those still running after the shutdown timeout are
   * aborted, and their holds are settled or released. Finally it waits for what the event store has not confirmed. The sagas end the holds of those for which this fails.
   */
  async beforeApplicationShutdown(): Promise<void> {
    const { settings, log, readiness, connections, billing, payers, host } = this.dependencies;
    const { drainDelayMs, totalTimeoutMs, shutdownTimeoutMs = totalTimeoutMs } = settings;
    readiness.isDraining = true;
    connections.startDraining();
    await delay(drainDelayMs);
    const { httpAdapter } = host;
    const closed = httpAdapter.close();
    // A request whose client has disconnected no longer occupies a connection, but its hold must still end.
    const drained = Promise.all([billing.drain(shutdownTimeoutMs), connections.waitUntilIdle(shutdownTimeoutMs)]);
    const describe = () => {
      const holds = billing.runningHoldIds;
      return {
        requests: holds.length,
        responses: connections.countResponding(),
        holds: holds.slice(0, MAX_LOGGED_HOLDS),
      };
    };
    await waitForDrain(drained, { log, limitMs: shutdownTimeoutMs + ABORT_TIMEOUT_MS, describe });
    const { pendingWrites } = payers;
    await waitForDrain(pendingWrites.waitUntilIdle(), {
      log,
      limitMs: WRITE_TIMEOUT_MS,
      describe: () => ({ unrecorded_holds: pendingWrites.holdIds.slice(0, MAX_LOGGED_HOLDS) }),
    });
    const closeTimer = setTimeout(() => httpAdapter.getHttpServer().closeAllConnections(), CLOSE_DELAY_MS);
    await closed;
    clearTimeout(closeTimer);
  }
}
