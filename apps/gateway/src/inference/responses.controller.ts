import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, Conversations, CreateResponse } from '#application';
import { sourceOf } from '../edge/asked.ts';
import { Authenticated } from '../edge/caller.ts';
import { InvalidRequest } from '../edge/errors.ts';
import { JSON_TYPE } from '../edge/json.ts';
import { PaidRequests } from '../edge/paid-requests.ts';
import { events, json, Operation } from '../openapi/operation.ts';
import { ResponseStream } from './answer-streams.ts';
import { ResponsesInput } from './responses.requests.ts';
import { ResponseDeleted, ResponseSchema, ResponseStreamEvent } from './responses.schemas.ts';

const ID = { id: { description: 'The id of a response', example: 'resp_00000000-0000-4000-8000-000000000000' } };

@Controller()
export class ResponsesController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequests,
    private readonly conversations: Conversations,
  ) {}

  @Post(['v1/responses', 'responses'])
  @HttpCode(200)
  @Operation({
    id: 'createResponse',
    tag: 'Inference',
    summary: 'Creates a response',
    description: 'OpenAI’s Responses, with every chat model. A response is stored for 30 days unless `store` is false.',
    auth: 'key',
    paid: true,
    body: ResponsesInput,
    example: { model: 'openai/gpt-5-mini', input: 'Hello' },
    answer: { ...json(ResponseSchema), ...events(ResponseStreamEvent) },
    errors: [402, 404, 409, 429, 502, 504],
  })
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
      if (whole) reply.type(JSON_TYPE).send(whole);
    });
  }

  @Get(['v1/responses/:id', 'responses/:id'])
  @Operation({
    id: 'getResponse',
    tag: 'Inference',
    summary: 'Returns a stored response',
    auth: 'key',
    params: ID,
    answer: json(ResponseSchema),
    errors: [404],
  })
  async read(
    @Authenticated() { accountId }: Caller,
    @Res() reply: FastifyReply,
    @Param('id') id: string,
    @Query('stream') stream: unknown,
  ) {
    if (stream === 'true') throw new InvalidRequest('A stored response cannot be streamed', 'stream');
    const { response } = await this.conversations.recall(accountId, id);
    return reply.type(JSON_TYPE).send(response);
  }

  @Delete(['v1/responses/:id', 'responses/:id'])
  @Operation({
    id: 'deleteResponse',
    tag: 'Inference',
    summary: 'Deletes a stored response',
    auth: 'key',
    params: ID,
    answer: json(ResponseDeleted),
    errors: [404],
  })
  async remove(@Authenticated() { accountId }: Caller, @Param('id') id: string) {
    await this.conversations.forget(accountId, id);
    return { id, object: 'response', deleted: true };
  }
}
