import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, CountMessageTokens, CreateMessage } from '#application';
import { CurrentCaller } from '../edge/authentication/authenticator.ts';
import { getQuerySource, PaidRequestHandler } from '../edge/idempotency/paid-request-handler.ts';
import { Operation } from '../openapi/operation.ts';
import { MessageStreamWriter } from './message-stream.ts';
import * as operations from './messages.operations.ts';
import { MessageRequest, TokenCountRequest } from './messages.requests.ts';

@Controller()
export class MessagesController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
  ) {}

  @Post(['v1/messages', 'messages'])
  @HttpCode(200)
  @Operation(operations.createMessage)
  async create(
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: MessageRequest,
  ) {
    await this.paid.serveOnce(request, reply, caller, async (payer, connection) => {
      const { accountId } = caller;
      const reader = { accountId, reserveMemory: (bytes: number) => connection.reserveMemory(bytes) };
      const params = { requestId: request.id, source: getQuerySource(request), reader, connection, body };
      const writer = body.stream ? new MessageStreamWriter(reply) : undefined;
      const message = await this.commands.execute(new CreateMessage(payer, params, writer));
      if (message) reply.type('application/json').send(message);
    });
  }

  @Post(['v1/messages/count_tokens', 'messages/count_tokens'])
  @HttpCode(200)
  @Operation(operations.countMessageTokens)
  async count(@CurrentCaller() caller: Caller, @Body() body: TokenCountRequest) {
    return { input_tokens: await this.commands.execute(new CountMessageTokens(caller.accountId, body)) };
  }
}
