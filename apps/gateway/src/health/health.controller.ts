import { Controller, Get, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Progress, ProjectorLag, projections } from '#projections';
import { BooksReader } from '../edge/books-reader.ts';
import { json, Operation } from '../openapi/operation.ts';
import { Alive, HealthSchema } from './health.schemas.ts';
import { Readiness, ReadinessOptions } from './readiness.ts';

const NAMES = projections.map(({ name }) => name);
const CHECK_TIMEOUT_MS = 2_000;

@Controller('health')
export class HealthController {
  constructor(
    private readonly books: BooksReader,
    private readonly lag: ProjectorLag,
    private readonly options: ReadinessOptions,
    private readonly readiness: Readiness,
  ) {}

  @Get('live')
  @Operation({
    id: 'isAlive',
    tag: 'Service',
    summary: 'Reports whether the process is alive',
    auth: 'public',
    answer: json(Alive),
  })
  live() {
    return { status: 'ok' };
  }

  @Get('ready')
  @Operation({
    id: 'isReady',
    tag: 'Service',
    summary: 'Reports whether the service is ready',
    auth: 'public',
    answer: json(HealthSchema),
    others: { 503: json(HealthSchema) },
  })
  async ready(@Res({ passthrough: true }) reply: FastifyReply) {
    const [postgres, eventStore, lagMs] = await Promise.all([
      answers(this.books.pool.query('select 1')),
      answers(this.options.store.head('account-ready')),
      within(this.lag.milliseconds(new Progress(this.books.pool), NAMES)).catch(() => undefined),
    ]);
    const { draining } = this.readiness;
    const projector = lagMs !== undefined && lagMs <= this.options.maxLagMs;
    const ready = postgres && eventStore && projector && !draining;
    reply.status(ready ? 200 : 503);
    const checks = { postgres, event_store: eventStore, projector, projector_lag_ms: Math.round(lagMs ?? -1) };
    return { status: ready ? 'ok' : 'unavailable', draining, checks };
  }
}

function answers(check: Promise<unknown>): Promise<boolean> {
  return within(check).then(
    () => true,
    () => false,
  );
}

function within<T>(check: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('no answer in time')), CHECK_TIMEOUT_MS);
  return Promise.race([check, promise]).finally(() => clearTimeout(timer));
}
