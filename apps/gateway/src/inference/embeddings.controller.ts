import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, CreateEmbeddings, type EmbeddingsResult } from '#application';
import { getQuantity } from '#domain';
import { toUsdJsonNumber } from '#kernel';
import { CurrentCaller } from '../edge/authentication/authenticator.ts';
import { getQuerySource, PaidRequestHandler } from '../edge/idempotency/paid-request-handler.ts';
import { jsonContent, Operation } from '../openapi/operation.ts';
import { EmbeddingRequest } from './embeddings.requests.ts';
import { EmbeddingList } from './embeddings.schemas.ts';

@Controller()
export class EmbeddingsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
  ) {}

  @Post(['v1/embeddings', 'embeddings'])
  @HttpCode(200)
  @Operation({
    id: 'createEmbeddings',
    tag: 'Inference',
    summary: 'Creates embeddings of texts',
    auth: 'key',
    paid: true,
    body: EmbeddingRequest,
    example: { model: 'openai/text-embedding-3-small', input: 'Hello' },
    response: jsonContent(EmbeddingList),
    errors: [402, 404, 409, 410, 429, 502, 504],
  })
  async create(
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: EmbeddingRequest,
  ) {
    await this.paid.serveOnce(request, reply, caller, async (payer, connection) => {
      const result = await this.commands.execute(
        new CreateEmbeddings(payer, { requestId: request.id, source: getQuerySource(request), connection }, body),
      );
      reply.type('application/json').send(serializeEmbeddings(result));
    });
  }
}

/** Serialises OpenAI's list around the vectors, which are already JSON. */
function serializeEmbeddings({ model, data, receipt: { usage, charged } }: EmbeddingsResult): string {
  const tokens = getQuantity('input', usage);
  const reported = { prompt_tokens: tokens, total_tokens: tokens, cost: toUsdJsonNumber(charged) };
  return `{"object":"list","data":${data},"model":${JSON.stringify(model)},"usage":${JSON.stringify(reported)}}`;
}
