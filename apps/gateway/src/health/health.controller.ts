import { Controller, Get, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Readiness } from '#modules';
import { json, Operation } from '../openapi/operation.ts';
import { Alive, HealthSchema } from './health.schemas.ts';

@Controller('health')
export class HealthController {
  constructor(private readonly readiness: Readiness) {}

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
    const report = await this.readiness.report();
    reply.status(report.status === 'ok' ? 200 : 503);
    return report;
  }
}
