import { Module } from '@nestjs/common';
import { Foundation } from '#infra';
import { EdgeModule } from '../edge/edge.module.ts';
import { HealthController } from './health.controller.ts';
import { Readiness, ReadinessOptions } from './readiness.ts';

/** Liveness and readiness of this process. */
@Module({
  imports: [EdgeModule],
  controllers: [HealthController],
  providers: [
    Readiness,
    {
      provide: ReadinessOptions,
      inject: [Foundation],
      useFactory: ({ store, settings }: Foundation): ReadinessOptions => ({ store, maxLagMs: settings.maxLagMs }),
    },
  ],
  exports: [Readiness],
})
export class HealthModule {}
