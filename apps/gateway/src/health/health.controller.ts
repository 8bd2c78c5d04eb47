import { Controller, Get, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { RELEASE } from '#foundation';
import { Readiness } from '#modules';
import { jsonContent, Operation } from '../openapi/operation.ts';
import { Alive, HealthSchema, ReleaseSchema } from './health.schemas.ts';

@Controller('health')
export class HealthController {
  constructor(private readonly readiness: Readiness) {}

  @Get()
  @Operation({
    id: 'getRelease',
    tag: 'Service',
    summary: 'Reports the version of the process',
    auth: 'public',
    response: jsonContent(ReleaseSchema),
  })
  getRelease() {
    return { status: 'ok', ...RELEASE };
  }

  @Get('live')
  @Operation({
    id: 'isAlive',
    tag: 'Service',
    summary: 'Reports whether the process is alive',
    auth: 'public',
    response: jsonContent(Alive),
  })
  getLiveness() {
    return { status: 'ok' };
  }

  @Get('ready')
  @Operation({
    id: 'isReady',
    tag: 'Service',
    summary: 'Reports whether the process is ready',
    auth: 'public',
    response: jsonContent(HealthSchema),
    otherResponses: { 503: jsonContent(HealthSchema) },
  })
  async getReadiness(@Res({ passthrough: true }) reply: FastifyReply) {
    const report = await this.readiness.report();
    reply.status(report.status === 'ok' ? 200 : 503);
    return report;
  }
}
