import { Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { Foundation } from '#foundation';
import { Readiness } from '#modules';
import { type ProjectionPosition, ProjectionProgress, ProjectorLag, projections, StartupCatchUp } from '#projections';
import { EdgeModule } from '../edge/edge.module.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { HealthController } from './health.controller.ts';

const PROJECTION_NAMES = projections.map(({ name }) => name);

/**
 * Liveness and readiness of this process.
 * A gateway is not ready before the read models include every event that was stored when the gateway started. A read
 * model that has stopped advancing is not waited for, unless it is an empty table of keys (`StartupCatchUp`). Later, a
 * lagging or stopped projector is only reported: it affects all gateways alike, and most requests do not need it. The
 * other roles do not wait for the read models: a supervisor may restart processes that are not ready, so a projector
 * might never catch up.
 */
@Module({ imports: [EdgeModule], controllers: [HealthController] })
export class HealthModule implements OnApplicationBootstrap, OnApplicationShutdown {
  private following: { stop(): void } | undefined;

  constructor(
    private readonly readiness: Readiness,
    private readonly foundation: Foundation,
    private readonly readModels: ReadModelReader,
    private readonly lag: ProjectorLag,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { settings, store, startDeadline } = this.foundation;
    const progress = new ProjectionProgress(this.readModels.pool);
    const end = await startDeadline.waitFor('the end of the event store', () => store.readLastPosition());
    const catchUp = new StartupCatchUp(end, progress, PROJECTION_NAMES);
    this.readiness.addRequired('caught_up', async () => {
      const lagging = Object.fromEntries(
        [...(await catchUp.findLagging())].map(([name, position]) => [name, toPositionJson(position)]),
      );
      return { ok: Object.keys(lagging).length === 0, end: Number(catchUp.target), behind: lagging };
    });
    this.following = this.lag.followEnd(store);
    this.readiness.addOptional('projector', async () => {
      const milliseconds = await this.lag.measureMs(progress, PROJECTION_NAMES);
      return { ok: milliseconds <= settings.maxLagMs, lag_ms: Math.round(milliseconds) };
    });
  }

  onApplicationShutdown(): void {
    this.following?.stop();
  }
}

/** Returns the position of a read model and, during a rebuild, also that of the rebuild. */
function toPositionJson({ position, rebuiltTo }: ProjectionPosition) {
  return { position: Number(position), ...(rebuiltTo === undefined ? {} : { rebuilt_to: Number(rebuiltTo) }) };
}
