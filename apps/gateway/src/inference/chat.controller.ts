import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { IsArray, IsBoolean, IsOptional, IsString } from 'class-validator';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ChatBody, CompleteChat, Payers } from '#application';
import { sourceOf, withModelId } from '../edge/asked.ts';
import { Authenticator } from '../edge/authenticator.ts';
import { Idempotency } from '../edge/idempotency.ts';
import { JSON_TYPE } from '../edge/json.ts';
import { Count, Fraction, Satisfies, valid } from '../edge/validated.ts';
import { events, json, Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { array } from '../openapi/schemas.ts';
import { ChatStream } from './answer-streams.ts';
import { ChatCompletion, ChatCompletionChunk, Message } from './chat.schemas.ts';
import { completion } from './chat-wire.ts';

const MAX_CHOICES = 128;

// Rules are checked from the last one up: the type stands next to its field.
class ChatRequest implements ChatBody {
  [field: string]: unknown;

  @Field({ description: 'The id of a model' })
  @IsString({ message: 'model must be a string' })
  model!: string;

  @Field({ ...array(Message), minItems: 1 })
  @Satisfies(areMessages, 'messages must be a non-empty array of objects with a role')
  messages!: readonly Readonly<Record<string, unknown>>[];

  @IsOptional()
  @IsBoolean({ message: 'stream must be a boolean' })
  stream?: boolean | null;

  @IsOptional()
  @Count()
  max_tokens?: number | null;

  @IsOptional()
  @Count()
  max_completion_tokens?: number | null;

  @IsOptional()
  @Count(MAX_CHOICES)
  n?: number | null;

  @IsOptional()
  @Fraction(0, 2)
  temperature?: number | null;

  @IsOptional()
  @Fraction(0, 1)
  top_p?: number | null;

  @IsOptional()
  @IsArray({ message: 'tools must be an array' })
  tools?: readonly unknown[] | null;
}

@Controller()
export class ChatController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
    private readonly idempotency: Idempotency,
    private readonly payers: Payers,
  ) {}

  @Post(['v1/chat/completions', 'chat/completions'])
  @HttpCode(200)
  @Operation({
    id: 'createChatCompletion',
    tag: 'Inference',
    summary: 'Completes a chat',
    description:
      'OpenAI’s chat completions. What it can cost at most is held first, and what it did cost is told in its usage. Further fields of OpenAI’s go to the model where it knows them.',
    auth: 'key',
    paid: true,
    body: ChatRequest,
    example: { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: 'Hello' }] },
    answer: { ...json(ChatCompletion), ...events(ChatCompletionChunk) },
    errors: [402, 404, 409, 429, 502, 504],
  })
  async complete(@Req() request: FastifyRequest, @Res() reply: FastifyReply, @Body() sent: unknown) {
    const caller = await this.authenticator.payer(request);
    const body = valid(ChatRequest, withModelId(sent));
    if (await this.idempotency.answered(request, reply, caller)) return;
    reply.header('x-generation-id', `gen-${request.id}`);
    const asked = { requestId: request.id, source: sourceOf(request), body, type: 'chat_completion' } as const;
    const client = body.stream ? new ChatStream(reply) : undefined;
    const whole = await this.commands.execute(new CompleteChat(this.payers.of(caller), asked, client));
    if (whole) return reply.type(JSON_TYPE).send(JSON.stringify(completion(whole.body, whole.receipt)));
  }
}

function areMessages(value: unknown): boolean {
  const isMessage = (each: unknown) =>
    typeof each === 'object' && each !== null && typeof (each as { role?: unknown }).role === 'string';
  return Array.isArray(value) && value.length > 0 && value.every(isMessage);
}
