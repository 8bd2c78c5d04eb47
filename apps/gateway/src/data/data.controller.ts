import { Body, Controller, Get, HttpCode, MethodNotAllowedException, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, CatalogueService, canIssueChallenges, PaymentMethods, RunDataLookup } from '#application';
import { SOCIAL_PROVIDER } from '#catalogue';
import { formatUsd } from '#kernel';
import { CurrentCaller } from '../edge/authentication/authenticator.ts';
import { NotFoundError } from '../edge/errors/errors.ts';
import { getQuerySource, PaidRequestHandler } from '../edge/idempotency/paid-request-handler.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './data.operations.ts';
import { DataFileHttpWriter } from './data-client.ts';
import { toDataEndpointList } from './data-wire.ts';

/** What a request names: a lookup in the catalogue. */
interface Named {
  readonly provider: string;
  readonly action: string;
}

@Controller()
export class DataController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
    private readonly catalogues: CatalogueService,
    private readonly offered: PaymentMethods,
  ) {}

  @Get(['v1/data/endpoints', 'data/endpoints'])
  @Operation(operations.listDataEndpoints)
  endpoints() {
    const data = toDataEndpointList(this.catalogues.current, canIssueChallenges(this.offered));
    return { status: 'success', data, total: data.length };
  }

  @Post(['v1/data/api/:provider/*', 'data/api/:provider/*'])
  @HttpCode(200)
  @Operation(operations.lookUp)
  async post(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: unknown,
  ) {
    await this.lookUp(request, reply, caller, body);
  }

  @Get(['v1/data/api/:provider/*', 'data/api/:provider/*'])
  @Operation(operations.lookUpByQuery)
  async get(@CurrentCaller() caller: Caller | undefined, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    await this.lookUp(request, reply, caller);
  }

  @Get([`v1/data/${SOCIAL_PROVIDER}/*`, `data/${SOCIAL_PROVIDER}/*`])
  @Operation(operations.lookUpSocial)
  async social(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    await this.lookUp(request, reply, caller);
  }

  private async lookUp(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller | undefined,
    body?: unknown,
  ): Promise<void> {
    const named = this.named(request, reply);
    const asked = { query: request.query as Readonly<Record<string, unknown>>, body };
    await this.paid.once(request, reply, caller, async (payer) => {
      const about = { requestId: request.id, source: getQuerySource(request), ...named };
      const found = await this.commands.execute(new RunDataLookup(payer, about, asked, new DataFileHttpWriter(reply)));
      if (!found) return; // a file, which has been sent
      const { status, bytes, charged } = found;
      reply.headers({ 'cache-control': 'no-store', 'x-cost-usd': formatUsd(charged) });
      reply.status(status).type('application/json; charset=utf-8').send(bytes);
    });
  }

  /** Those of the social network are below a path of their own. @throws NotFoundError, and 405 where it takes the other method */
  private named({ params, method }: FastifyRequest, reply: FastifyReply): Named {
    const { provider, '*': action = '' } = params as { readonly provider?: string; readonly '*'?: string };
    const entry = this.catalogues.current.findDataEndpoint(provider ?? SOCIAL_PROVIDER, action);
    if (!entry || provider === SOCIAL_PROVIDER)
      throw new NotFoundError(
        `There is no lookup "${provider ?? SOCIAL_PROVIDER}/${action}"; GET /v1/data/endpoints lists all`,
      );
    if (entry.method !== method) {
      reply.header('allow', entry.method);
      throw new MethodNotAllowedException(`This lookup takes ${entry.method} only`);
    }
    return { provider: entry.provider, action };
  }
}
