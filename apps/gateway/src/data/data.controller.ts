import { Body, Controller, Get, HttpCode, MethodNotAllowedException, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  assertLookupOffered,
  type Caller,
  CatalogueService,
  canIssueChallenges,
  PaymentMethods,
  RunDataLookup,
} from '#application';
import { SOCIAL_PROVIDER } from '#catalogue';
import { formatUsd } from '#kernel';
import { CurrentCaller } from '../edge/authentication/authenticator.ts';
import { NotFoundError } from '../edge/errors/errors.ts';
import { getQuerySource, PaidRequestHandler } from '../edge/idempotency/paid-request-handler.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './data.operations.ts';
import { DataFileHttpWriter } from './data-file-writer.ts';
import { toDataEndpointList } from './data-wire.ts';

interface LookupName {
  readonly provider: string;
  readonly action: string;
}

@Controller()
export class DataController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
    private readonly catalogues: CatalogueService,
    private readonly paymentMethods: PaymentMethods,
  ) {}

  @Get(['v1/data/endpoints', 'data/endpoints'])
  @Operation(operations.listDataEndpoints)
  listEndpoints() {
    const data = toDataEndpointList(this.catalogues.current, canIssueChallenges(this.paymentMethods));
    return { status: 'success', data, total: data.length };
  }

  @Post(['v1/data/api/:provider/*', 'data/api/:provider/*'])
  @HttpCode(200)
  @Operation(operations.runLookup)
  async runLookupByBody(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: unknown,
  ) {
    await this.runLookup(request, reply, caller, body);
  }

  @Get(['v1/data/api/:provider/*', 'data/api/:provider/*'])
  @Operation(operations.runLookupByQuery)
  async runLookupByQuery(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    await this.runLookup(request, reply, caller);
  }

  @Get([`v1/data/${SOCIAL_PROVIDER}/*`, `data/${SOCIAL_PROVIDER}/*`])
  @Operation(operations.runSocialLookup)
  async runSocialLookup(
    @CurrentCaller() caller: Caller | undefined,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ) {
    await this.runLookup(request, reply, caller);
  }

  private async runLookup(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller | undefined,
    body?: unknown,
  ): Promise<void> {
    const lookup = this.resolveLookup(request, reply);
    const input = { query: request.query as Readonly<Record<string, unknown>>, body };
    await this.paid.serveOnce(request, reply, caller, async (payer) => {
      const context = { requestId: request.id, source: getQuerySource(request), ...lookup };
      const result = await this.commands.execute(
        new RunDataLookup(payer, context, input, new DataFileHttpWriter(reply)),
      );
      if (!result) return; // a file, which was streamed to the client
      const { status, bytes, charged } = result;
      reply.header('x-cost-usd', formatUsd(charged));
      reply.status(status).type('application/json; charset=utf-8').send(bytes);
    });
  }

  /**
   * Finds the lookup that a request names. Lookups of the social network have a path of their own.
   * @throws NotFoundError if no lookup has this path, InvalidRequestError 404 if it is not available here
   * @throws MethodNotAllowedException if the lookup does not support the HTTP method of the request
   */
  private resolveLookup({ params, method }: FastifyRequest, reply: FastifyReply): LookupName {
    const { provider, '*': action = '' } = params as { readonly provider?: string; readonly '*'?: string };
    const catalogue = this.catalogues.current;
    if (provider !== SOCIAL_PROVIDER) assertLookupOffered({ provider: provider ?? SOCIAL_PROVIDER, action }, catalogue);
    const entry = catalogue.findDataEndpoint(provider ?? SOCIAL_PROVIDER, action);
    if (!entry || provider === SOCIAL_PROVIDER)
      throw new NotFoundError(
        `Lookup "${provider ?? SOCIAL_PROVIDER}/${action}" not found; GET /v1/data/endpoints lists all lookups`,
      );
    if (entry.method !== method) {
      reply.header('allow', entry.method);
      throw new MethodNotAllowedException(`This lookup supports ${entry.method} only`);
    }
    return { provider: entry.provider, action };
  }
}
