import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { Allow, IsIn, IsOptional, IsString } from 'class-validator';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CreateEmbeddings, type EmbeddingAnswer, type EmbeddingBody, Payers } from '#application';
import { usdNumber } from '#kernel';
import { sourceOf, withModelId } from '../edge/asked.ts';
import { Authenticator } from '../edge/authenticator.ts';
import { Idempotency } from '../edge/idempotency.ts';
import { JSON_TYPE } from '../edge/json.ts';
import { Count, valid } from '../edge/validated.ts';
import { json, Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { EmbeddingInput, EmbeddingList } from './embeddings.schemas.ts';

// Rules are checked from the last one up. What `input` may be depends on the model, and is checked with it.
class EmbeddingRequest implements EmbeddingBody {
  [field: string]: unknown;

  @Field({ description: 'The id of an embedding model' })
  @IsString({ message: 'model must be a string' })
  model!: string;

  @Field(EmbeddingInput)
  @Allow()
  input!: unknown;

  @IsOptional()
  @IsIn(['float', 'base64'], { message: 'encoding_format must be float or base64' })
  encoding_format?: string | null;

  @IsOptional()
  @Count()
  dimensions?: number | null;

  @IsOptional()
  @IsString({ message: 'user must be a string' })
  user?: string | null;
}

@Controller()
export class EmbeddingsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
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
  async create(@Req() request: FastifyRequest, @Res() reply: FastifyReply, @Body() sent: unknown) {
    const caller = await this.authenticator.payer(request);
    const body = valid(EmbeddingRequest, withModelId(sent));
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
  const tokens = usage.input + usage.cacheRead + usage.cacheWrite;
  const told = { prompt_tokens: tokens, total_tokens: tokens, cost: usdNumber(charged) };
  return `{"object":"list","data":${data},"model":${JSON.stringify(model)},"usage":${JSON.stringify(told)}}`;
}
