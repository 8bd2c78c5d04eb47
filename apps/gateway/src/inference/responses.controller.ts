import { Body, Controller, Delete, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { IsArray, IsBoolean, IsIn, IsInt, IsNumber, IsObject, IsOptional, IsString, Max, Min } from 'class-validator';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Conversations, CreateResponse, Payers, type ResponsesBody, type Thing } from '#application';
import { sourceOf, withModelId } from '../edge/asked.ts';
import { Authenticator } from '../edge/authenticator.ts';
import { InvalidRequest } from '../edge/errors.ts';
import { Idempotency } from '../edge/idempotency.ts';
import { JSON_TYPE } from '../edge/json.ts';
import { Count, Fraction, Satisfies, valid } from '../edge/validated.ts';
import { events, json, Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { ResponseStream } from './answer-streams.ts';
import { ResponseDeleted, ResponseSchema, ResponseStreamEvent } from './responses.schemas.ts';

const ID = { id: { description: 'The id of a response', example: 'resp_00000000-0000-4000-8000-000000000000' } };

// Rules are checked from the last one up: the type stands next to its field.
class ResponsesInput implements ResponsesBody {
  [field: string]: unknown;

  @IsString({ message: 'model must be a string' })
  model!: string;

  @Field({ type: ['string', 'array'], description: 'Text, or items of a conversation', minLength: 1, minItems: 1 })
  @Satisfies(isInput, 'input must be text or a non-empty array of items')
  input!: string | readonly unknown[];

  @IsOptional()
  @IsString({ message: 'instructions must be a string' })
  instructions?: string | null;

  @IsOptional()
  @Count()
  max_output_tokens?: number | null;

  @IsOptional()
  @Fraction(0, 2)
  temperature?: number | null;

  @IsOptional()
  @Fraction(0, 1)
  top_p?: number | null;

  @IsOptional()
  @IsNumber({}, { message: 'presence_penalty must be a number' })
  presence_penalty?: number | null;

  @IsOptional()
  @IsNumber({}, { message: 'frequency_penalty must be a number' })
  frequency_penalty?: number | null;

  @IsOptional()
  @IsArray({ message: 'tools must be an array' })
  tools?: readonly unknown[] | null;

  @IsOptional()
  @IsBoolean({ message: 'parallel_tool_calls must be a boolean' })
  parallel_tool_calls?: boolean | null;

  @Field({ type: 'object' })
  @IsOptional()
  @Satisfies(isReasoning, 'reasoning must be an object whose effort is a string')
  reasoning?: Thing | null;

  @Field({ type: 'object' })
  @IsOptional()
  @Satisfies(isTextConfig, 'text must be an object whose verbosity is a string')
  text?: Thing | null;

  @IsOptional()
  @IsObject({ message: 'response_format must be an object' })
  response_format?: Thing | null;

  @IsOptional()
  @IsString({ message: 'previous_response_id must be a string' })
  previous_response_id?: string | null;

  @IsOptional()
  @IsBoolean({ message: 'store must be a boolean' })
  store?: boolean | null;

  @IsOptional()
  @IsObject({ message: 'metadata must be an object' })
  metadata?: Thing | null;

  @IsOptional()
  @IsBoolean({ message: 'stream must be a boolean' })
  stream?: boolean | null;

  @IsOptional()
  @IsString({ each: true, message: 'include must be an array of strings' })
  @IsArray({ message: 'include must be an array of strings' })
  include?: readonly string[] | null;

  @IsOptional()
  @Min(0, { message: 'top_logprobs must be from 0 to 20' })
  @Max(20, { message: 'top_logprobs must be from 0 to 20' })
  @IsInt({ message: 'top_logprobs must be a whole number' })
  top_logprobs?: number | null;

  @IsOptional()
  @IsIn(['auto', 'disabled'], { message: 'truncation must be "auto" or "disabled"' })
  truncation?: string | null;

  @IsOptional()
  @IsString({ message: 'user must be a string' })
  user?: string | null;
}

@Controller()
export class ResponsesController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
    private readonly idempotency: Idempotency,
    private readonly conversations: Conversations,
    private readonly payers: Payers,
  ) {}

  @Post(['v1/responses', 'responses'])
  @HttpCode(200)
  @Operation({
    id: 'createResponse',
    tag: 'Inference',
    summary: 'Makes a response',
    description: 'OpenAI’s Responses, on every chat model. It is kept for 30 days unless store is false.',
    auth: 'key',
    paid: true,
    body: ResponsesInput,
    example: { model: 'openai/gpt-5-mini', input: 'Hello' },
    answer: { ...json(ResponseSchema), ...events(ResponseStreamEvent) },
    errors: [402, 404, 409, 429, 502, 504],
  })
  async create(@Req() request: FastifyRequest, @Res() reply: FastifyReply, @Body() sent: unknown) {
    const caller = await this.authenticator.payer(request);
    const body = valid(ResponsesInput, withModelId(sent));
    if (await this.idempotency.answered(request, reply, caller)) return;
    reply.header('x-generation-id', `gen-${request.id}`);
    const asked = { requestId: request.id, source: sourceOf(request), accountId: caller.accountId, body };
    const outlet = body.stream ? new ResponseStream(reply) : undefined;
    const whole = await this.commands.execute(new CreateResponse(this.payers.of(caller), asked, outlet));
    if (whole) return reply.type(JSON_TYPE).send(whole);
  }

  @Get(['v1/responses/:id', 'responses/:id'])
  @Operation({
    id: 'getResponse',
    tag: 'Inference',
    summary: 'Tells a response that was kept',
    auth: 'key',
    params: ID,
    answer: json(ResponseSchema),
    errors: [404],
  })
  async read(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Param('id') id: string,
    @Query('stream') stream: unknown,
  ) {
    const { accountId } = await this.authenticator.reader(request);
    if (stream === 'true') throw new InvalidRequest('A stored response cannot be streamed', 'stream');
    const { response } = await this.conversations.recall(accountId, id);
    return reply.type(JSON_TYPE).send(response);
  }

  @Delete(['v1/responses/:id', 'responses/:id'])
  @Operation({
    id: 'deleteResponse',
    tag: 'Inference',
    summary: 'Forgets a response that was kept',
    auth: 'key',
    params: ID,
    answer: json(ResponseDeleted),
    errors: [404],
  })
  async remove(@Req() request: FastifyRequest, @Param('id') id: string) {
    const { accountId } = await this.authenticator.reader(request);
    await this.conversations.forget(accountId, id);
    return { id, object: 'response', deleted: true };
  }
}

function isInput(value: unknown): boolean {
  return (typeof value === 'string' || Array.isArray(value)) && value.length > 0;
}

function isReasoning(value: unknown): boolean {
  return isObjectWith(value, 'effort') && isObjectWith(value, 'summary');
}

function isTextConfig(value: unknown): boolean {
  return isObjectWith(value, 'verbosity');
}

/** An object with text, or nothing, in a field. */
function isObjectWith(value: unknown, field: string): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const found = (value as Thing)[field] ?? '';
  return typeof found === 'string';
}
