import { Controller, Get, Headers, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Operation } from '../openapi/operation.ts';
import * as operations from './attestation.operations.ts';
import { AttestationQuery } from './attestation.requests.ts';
import { AttestationCache } from './attestation-cache.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

@Controller()
export class AttestationController {
  constructor(private readonly attestations: AttestationCache) {}

  @Get('private/attestation')
  @Operation(operations.getAttestation)
  async get(
    @Query() { model }: AttestationQuery,
    @Headers('cache-control') caching: string | undefined,
    @Res() reply: FastifyReply,
  ) {
    const freshness = caching?.includes('no-cache') ? 'fresh' : 'any';
    const evidence = await this.attestations.loadEvidence(model || undefined, freshness);
    reply.type(JSON_TYPE).send(evidence);
  }
}
