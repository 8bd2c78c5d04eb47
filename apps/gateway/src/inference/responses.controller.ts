import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, Conversations, CreateResponse } from '#application';
import { Authenticated } from '../edge/caller.ts';
import { InvalidRequest } from '../edge/errors.ts';
import { PaidRequests, sourceOf } from '../edge/paid-requests.ts';
import { Operation } from '../openapi/operation.ts';
import { ResponseStream } from './response-stream.ts';
import * as operations from './responses.operations.ts';
import { ResponsesInput } from './responses.requests.ts';

@Controller()
export class ResponsesController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequests,
    private readonly conversations: Conversations,
  ) {}

  @Post(['v1/responses', 'responses'])
  @HttpCode(200)
  @Operation(operations.createResponse)
  async create(
    @Authenticated() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: ResponsesInput,
  ) {
    await this.paid.once(request, reply, caller, async (payer) => {
      const asked = { requestId: request.id, source: sourceOf(request), accountId: caller.accountId, body };
      const outlet = body.stream ? new ResponseStream(reply) : undefined;
      const whole = await this.commands.execute(new CreateResponse(payer, asked, outlet));
      if (whole) reply.type('application/json').send(whole);
    });
  }

  @Get(['v1/responses/:id', 'responses/:id'])
  @Operation(operations.getResponse)
  async read(
    @Authenticated() { accountId }: Caller,
    @Res() reply: FastifyReply,
    @Param('id') id: string,
    @Query('stream') stream: unknown,
  ) {
    if (stream === 'true') throw new InvalidRequest('A stored response cannot be streamed', 'stream');
    const { response } = await this.conversations.recall(accountId, id);
    return reply.type('application/json').send(response);
  }

  @Delete(['v1/responses/:id', 'responses/:id'])
  @Operation(operations.deleteResponse)
  async remove(@Authenticated() { accountId }: Caller, @Param('id') id: string) {
    await this.conversations.forget(accountId, id);
    return { id, object: 'response', deleted: true };
  }
}
