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
    await this.paid.once(request, reply, caller, async (payer, audience) => {
      const reader = this.readerOf(reply);
      const asked = { requestId: request.id, source: getQuerySource(request), reader, connection: audience, body };
      const outlet = body.stream ? new ResponseStreamWriter(reply) : undefined;
      const whole = await this.commands.execute(new CreateResponse(payer, asked, outlet));
      if (whole) reply.type('application/json').send(whole);
    });
  }

  @Post(['v1/responses/input_tokens', 'responses/input_tokens'])
  @HttpCode(200)
  @Operation(operations.countResponseTokens)
  async count(@Res({ passthrough: true }) reply: FastifyReply, @Body() body: ConversationInput) {
    const input_tokens = await this.commands.execute(
      new CountResponseTokens(this.readerOf(reply), { ...body, input: body.input ?? [] }),
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
    @Body() { input: given, stream: _, ...body }: ConversationInput,
  ) {
    const said = typeof given === 'string' ? [{ role: 'user', content: given }] : (given ?? []);
    const input = [...said, { type: 'compaction_trigger' }];
    await this.paid.once(request, reply, caller, async (payer, audience) => {
      const about = { requestId: request.id, source: getQuerySource(request), reader: this.readerOf(reply) };
      const asked = {
        ...about,
        body: { ...body, input, store: false } as ResponsesInput,
        connection: audience,
        resultFormat: 'compaction',
      } as const;
      reply.type('application/json').send(await this.commands.execute(new CreateResponse(payer, asked)));
    });
  }

  @Get(['v1/responses/:id/input_items', 'responses/:id/input_items'])
  @Operation(operations.listInputItems)
  async inputItems(
    @Res({ passthrough: true }) reply: FastifyReply,
    @Param('id') id: string,
    @Query() query: InputItemsQuery,
  ) {
    const { after, limit = '20', order = 'desc' } = query;
    const showsEncrypted = Object.values(query).flat().includes(ENCRYPTED);
    const items = getFullInput(await this.conversations.load(this.readerOf(reply), id));
    return paginateItems(items, { after, limit: Number(limit), order, showsEncrypted });
  }

  @Get(['v1/responses/:id', 'responses/:id'])
  @Operation(operations.getResponse)
  async read(@Res() reply: FastifyReply, @Param('id') id: string, @Query('stream') stream: unknown) {
    if (stream !== undefined && isTrue(String(stream)))
      throw new BadRequestError('A stored response cannot be streamed', 'stream');
    return reply.type('application/json').send(await this.conversations.loadResponse(this.readerOf(reply), id));
  }

  @Delete(['v1/responses/:id', 'responses/:id'])
  @Operation(operations.deleteResponse)
  async remove(@CurrentCaller() { accountId }: Caller, @Param('id') id: string) {
    await this.conversations.remove(accountId, id);
    return { id, object: 'response', deleted: true };
  }

  /** What is read for a request shares the memory that there is for bodies, until it is answered. */
  private readerOf(reply: FastifyReply): StoredResponseReader {
    return { accountId: reply.request.caller.accountId, reserveMemory: (bytes) => this.bodies.take(reply, bytes) };
  }
}
