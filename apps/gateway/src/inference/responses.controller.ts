import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Caller,
  ConversationService,
  CountResponseTokens,
  CreateResponse,
  getFullInput,
  paginateItems,
  type StoredResponseReader,
} from '#application';
import { CurrentCaller } from '../edge/authentication/authenticator.ts';
import { BadRequestError } from '../edge/errors/errors.ts';
import { getQuerySource, PaidRequestHandler } from '../edge/idempotency/paid-request-handler.ts';
import { BodyParser } from '../edge/validation/body-parser.ts';
import { isTrue } from '../edge/validation/validation.ts';
import { Operation } from '../openapi/operation.ts';
import { ResponseStreamWriter } from './response-stream.ts';
import * as operations from './responses.operations.ts';
import { ConversationInput, InputItemsQuery, ResponsesInput } from './responses.requests.ts';

const ENCRYPTED = 'reasoning.encrypted_content';

@Controller()
export class ResponsesController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
    private readonly conversations: ConversationService,
    private readonly bodies: BodyParser,
  ) {}

  @Post(['v1/responses', 'responses'])
  @HttpCode(200)
  @Operation(operations.createResponse)
  async create(
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: ResponsesInput,
  ) {
    await this.paid.serveOnce(request, reply, caller, async (payer, connection) => {
      const reader = this.createReader(reply);
      const params = { requestId: request.id, source: getQuerySource(request), reader, connection, body };
      const writer = body.stream ? new ResponseStreamWriter(reply) : undefined;
      const response = await this.commands.execute(new CreateResponse(payer, params, writer));
      if (response) reply.type('application/json').send(response);
    });
  }

  @Post(['v1/responses/input_tokens', 'responses/input_tokens'])
  @HttpCode(200)
  @Operation(operations.countResponseTokens)
  async count(@Res({ passthrough: true }) reply: FastifyReply, @Body() body: ConversationInput) {
    const input_tokens = await this.commands.execute(
      new CountResponseTokens(this.createReader(reply), { ...body, input: body.input ?? [] }),
    );
    return { object: 'response.input_tokens', input_tokens };
  }

  @Post(['v1/responses/compact', 'responses/compact'])
  @HttpCode(200)
  @Operation(operations.compactResponse)
  async compact(
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() { input: rawInput, stream: _, ...body }: ConversationInput,
  ) {
    const items = typeof rawInput === 'string' ? [{ role: 'user', content: rawInput }] : (rawInput ?? []);
    const input = [...items, { type: 'compaction_trigger' }];
    await this.paid.serveOnce(request, reply, caller, async (payer, connection) => {
      const params = {
        requestId: request.id,
        source: getQuerySource(request),
        reader: this.createReader(reply),
        body: { ...body, input, store: false } as ResponsesInput,
        connection,
        resultFormat: 'compaction',
      } as const;
      reply.type('application/json').send(await this.commands.execute(new CreateResponse(payer, params)));
    });
  }

  @Get(['v1/responses/:id/input_items', 'responses/:id/input_items'])
  @Operation(operations.listInputItems)
  async listInputItems(
    @Res({ passthrough: true }) reply: FastifyReply,
    @Param('id') id: string,
    @Query() query: InputItemsQuery,
  ) {
    const { after, limit = '20', order = 'desc' } = query;
    const showsEncrypted = Object.values(query).flat().includes(ENCRYPTED);
    const items = getFullInput(await this.conversations.load(this.createReader(reply), id));
    return paginateItems(items, { after, limit: Number(limit), order, showsEncrypted });
  }

  @Get(['v1/responses/:id', 'responses/:id'])
  @Operation(operations.getResponse)
  async read(@Res() reply: FastifyReply, @Param('id') id: string, @Query('stream') stream: unknown) {
    if (stream !== undefined && isTrue(String(stream)))
      throw new BadRequestError('A stored response cannot be streamed', 'stream');
    return reply.type('application/json').send(await this.conversations.loadResponse(this.createReader(reply), id));
  }

  @Delete(['v1/responses/:id', 'responses/:id'])
  @Operation(operations.deleteResponse)
  async remove(@CurrentCaller() { accountId }: Caller, @Param('id') id: string) {
    await this.conversations.remove(accountId, id);
    return { id, object: 'response', deleted: true };
  }

  /** Memory that is reserved for reading stored responses counts towards the budget until `reply` has been sent. */
  private createReader(reply: FastifyReply): StoredResponseReader {
    return {
      accountId: reply.request.caller.accountId,
      reserveMemory: (bytes) => this.bodies.reserveMemory(reply, bytes),
    };
  }
}
