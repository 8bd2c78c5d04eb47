import { type BeforeApplicationShutdown, Inject, Module, type OnApplicationBootstrap } from '@nestjs/common';
import pg from 'pg';
import { Foundation, LeaseStatus, type RunningProcess, waitForDrain } from '#foundation';
import { describeLeases, Readiness, StoresModule } from '#modules';
import { ProjectionProgress, ProjectorLag, projections } from '#projections';
import { startProjector } from './projector.ts';

/** How long batches that are being applied may take; a query ends sooner. */
const STOP_TIMEOUT_MS = 40_000;
const PROJECTION_NAMES = projections.map(({ name }) => name);

/** Updates the read models from events. */
@Module({ imports: [StoresModule] })
export class ProjectorModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly leaseStatus = new LeaseStatus();
  private running: RunningProcess | undefined;
  private following: { stop(): void } | undefined;

  constructor(
    private readonly foundation: Foundation,
    @Inject(pg.Pool) private readonly pool: pg.Pool, // tsc emits no run-time type for this class
    private readonly readiness: Readiness,
    private readonly lag: ProjectorLag,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    this.running = await startProjector(this.foundation, this.leaseStatus);
    this.following = this.lag.followEnd(this.foundation.store);
    this.registerReadinessCheck(this.leaseStatus);
  }

  /**
   * Registers an optional readiness check. Positions are those of projections that are not blocked. The lag is that of
   * the slowest projection, even a blocked one: the time since this process recorded an append that the projection has
   * not applied. Appends of other processes are recorded every second.
   */
  private registerReadinessCheck(leaseStatus: LeaseStatus): void {
    const { store, settings } = this.foundation;
    const progress = new ProjectionProgress(this.pool);
    this.readiness.addOptional('projections', async () => {
      const end = await store.readLastPosition();
      const milliseconds = await this.lag.measureMs(progress, PROJECTION_NAMES);
      const entries = [...(await progress.loadActivePositions(PROJECTION_NAMES))];
      const positions = Object.fromEntries(entries.map(([name, { position }]) => [name, Number(position)]));
      const rebuilt = entries.flatMap(([name, { rebuiltTo }]) =>
        rebuiltTo === undefined ? [] : [[name, Number(rebuiltTo)]],
      );
      const metrics = {
        leading: leaseStatus.leading.length > 0,
        ...(await describeLeases(leaseStatus, this.pool)),
        lag_ms: Math.round(milliseconds),
        end: Number(end),
        positions,
        ...(rebuilt.length > 0 ? { rebuilt_to: Object.fromEntries(rebuilt) } : {}),
      };
      return { ok: milliseconds <= settings.maxLagMs && metrics.without_leader.length === 0, ...metrics };
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.following?.stop();
    const { log } = this.foundation;
    const describe = () => ({ leading: this.leaseStatus.leading });
    await waitForDrain(this.running?.close() ?? Promise.resolve(), { log, limitMs: STOP_TIMEOUT_MS, describe });
  }
}
