import { Module, type OnApplicationBootstrap } from '@nestjs/common';
import { Foundation } from '#foundation';
import { Readiness } from '#modules';
import { type ProjectionPosition, ProjectionProgress, ProjectorLag, projections, StartupCatchUp } from '#projections';
import { EdgeModule } from '../edge/edge.module.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { HealthController } from './health.controller.ts';

const PROJECTION_NAMES = projections.map(({ name }) => name);

/**
 * Liveness and readiness of this process. A gateway comes into service when the read models show what there was at its start; after
 * that a projector that is late or stands still is shown and no more: it is so for all gateways, and what they sell needs none. Roles
 * that nobody sends requests to wait for nothing: a supervisor that ends what is not ready would have them begin again.
 */
@Module({ imports: [EdgeModule], controllers: [HealthController] })
export class HealthModule implements OnApplicationBootstrap {
  constructor(
    private readonly readiness: Readiness,
    private readonly foundation: Foundation,
    private readonly readModels: ReadModelReader,
    private readonly lag: ProjectorLag,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { settings, store } = this.foundation;
    const progress = new ProjectionProgress(this.readModels.pool);
    const catchUp = new StartupCatchUp(await store.readLastPosition(), progress, PROJECTION_NAMES);
    this.readiness.addRequired('caught_up', async () => {
      const lagging = Object.fromEntries(
        [...(await catchUp.findLagging())].map(([name, position]) => [name, toPositionJson(position)]),
      );
      return { ok: Object.keys(lagging).length === 0, end: Number(catchUp.target), behind: lagging };
    });
    this.readiness.addOptional('projector', async () => {
      const milliseconds = await this.lag.measureMs(progress, PROJECTION_NAMES);
      return { ok: milliseconds <= settings.maxLagMs, lag_ms: Math.round(milliseconds) };
    });
  }
}

/** How far a read model is; while it is made anew, how far that is. */
function toPositionJson({ position, rebuiltTo }: ProjectionPosition) {
  return { position: Number(position), ...(rebuiltTo === undefined ? {} : { rebuilt_to: Number(rebuiltTo) }) };
}
