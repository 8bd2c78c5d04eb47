import { Module } from '@nestjs/common';
import { Foundation } from '#infra';
import { Readiness } from '#modules';
import { Progress, ProjectorLag, projections } from '#projections';
import { BooksReader } from '../edge/books-reader.ts';
import { EdgeModule } from '../edge/edge.module.ts';
import { HealthController } from './health.controller.ts';

const NAMES = projections.map(({ name }) => name);

/** Liveness and readiness of this process. */
@Module({ imports: [EdgeModule], controllers: [HealthController] })
export class HealthModule {
  constructor(readiness: Readiness, { settings }: Foundation, { pool }: BooksReader, lag: ProjectorLag) {
    const progress = new Progress(pool);
    readiness.require('projector', async () => {
      const milliseconds = await lag.milliseconds(progress, NAMES);
      return { ok: milliseconds <= settings.maxLagMs, lag_ms: Math.round(milliseconds) };
    });
  }
}
