import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, CreateEmbeddings, type EmbeddingAnswer, Payers } from '#application';
import { quantityOf } from '#domain';
import { usdNumber } from '#kernel';
import { sourceOf } from '../edge/asked.ts';
import { Authenticated } from '../edge/caller.ts';
import { Idempotency } from '../edge/idempotency.ts';
import { JSON_TYPE } from '../edge/json.ts';
import { json, Operation } from '../openapi/operation.ts';
import { EmbeddingRequest } from './embeddings.requests.ts';
import { EmbeddingList } from './embeddings.schemas.ts';

@Controller()
export class EmbeddingsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly idempotency: Idempotency,
    private readonly payers: Payers,
  ) {}

  @Post(['v1/embeddings', 'embeddings'])
  @HttpCode(200)
  @Operation({
    id: 'createEmbeddings',
    tag: 'Inference',
    summary: 'Embeds texts',
    auth: 'key',
    paid: true,
    body: EmbeddingRequest,
    example: { model: 'openai/text-embedding-3-small', input: 'Hello' },
    answer: json(EmbeddingList),
    errors: [402, 404, 409, 429, 502, 504],
  })
  async create(
    @Authenticated() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: EmbeddingRequest,
  ) {
    if (await this.idempotency.answered(request, reply, caller)) return;
    reply.header('x-generation-id', `gen-${request.id}`);
    const answer = await this.commands.execute(
      new CreateEmbeddings(this.payers.of(caller), request.id, sourceOf(request), body),
    );
    return reply.type(JSON_TYPE).send(wire(answer));
  }
}

/** OpenAI's list around the vectors, which are already JSON. */
function wire({ model, data, receipt: { usage, charged } }: EmbeddingAnswer): string {
  const tokens = quantityOf('input', usage);
  const reported = { prompt_tokens: tokens, total_tokens: tokens, cost: usdNumber(charged) };
  return `{"object":"list","data":${data},"model":${JSON.stringify(model)},"usage":${JSON.stringify(reported)}}`;
}
