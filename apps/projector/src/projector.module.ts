import { type BeforeApplicationShutdown, Inject, Module, type OnApplicationBootstrap } from '@nestjs/common';
import pg from 'pg';
import { Foundation, LeaseStatus, type Running } from '#foundation';
import { Readiness, StoresModule } from '#modules';
import { ProjectionProgress, ProjectorLag, projections } from '#projections';
import { startProjector } from './projector.ts';

const NAMES = projections.map(({ name }) => name);

/** The read side: facts become rows. */
@Module({ imports: [StoresModule] })
export class ProjectorModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private running: Running | undefined;

  constructor(
    private readonly foundation: Foundation,
    @Inject(pg.Pool) private readonly pool: pg.Pool, // tsc does not say its type at run time
    private readonly readiness: Readiness,
    private readonly lag: ProjectorLag,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const turns = new LeaseStatus();
    this.running = await startProjector(this.foundation, turns);
    this.show(turns);
  }

  /** Where each read model is, and how late the last of them, as seen at one look after the other. */
  private show(turns: LeaseStatus): void {
    const { store, settings } = this.foundation;
    const progress = new ProjectionProgress(this.pool);
    this.readiness.show('projections', async () => {
      const end = await store.readLastPosition();
      this.lag.recordAppend(end);
      const milliseconds = await this.lag.measureMs(progress, NAMES);
      const places = [...(await progress.loadActivePositions(NAMES))];
      const positions = Object.fromEntries(places.map(([name, { position }]) => [name, Number(position)]));
      const rebuilt = places.flatMap(([name, { rebuiltTo }]) =>
        rebuiltTo === undefined ? [] : [[name, Number(rebuiltTo)]],
      );
      const figures = {
        leading: turns.leading.length > 0,
        lag_ms: Math.round(milliseconds),
        end: Number(end),
        positions,
        ...(rebuilt.length > 0 ? { rebuilt_to: Object.fromEntries(rebuilt) } : {}),
      };
      return { ok: milliseconds <= settings.maxLagMs, ...figures };
    });
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.running?.close();
  }
}
