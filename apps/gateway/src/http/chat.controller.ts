import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { IsArray, IsBoolean, IsInt, IsNumber, IsOptional, IsString, Max, Min } from 'class-validator';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ChatAnswer, type ChatBody, CompleteChat, type StreamedChat } from '#application';
import { sourceOf, withModelId } from '../edge/asked.ts';
import { Authenticator } from '../edge/authenticator.ts';
import { Idempotency } from '../edge/idempotency.ts';
import { JSON_TYPE } from '../edge/json.ts';
import { SseClient } from '../edge/sse.ts';
import { Satisfies, valid } from '../edge/validated.ts';
import { events, json, Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { array } from '../openapi/schemas.ts';
import { ChatCompletion, ChatCompletionChunk, Message } from './chat.schemas.ts';
import { completion, endOfStream } from './chat-wire.ts';

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
  @Min(1, { message: 'max_tokens must be at least 1' })
  @IsInt({ message: 'max_tokens must be a whole number' })
  max_tokens?: number | null;

  @IsOptional()
  @Min(1, { message: 'max_completion_tokens must be at least 1' })
  @IsInt({ message: 'max_completion_tokens must be a whole number' })
  max_completion_tokens?: number | null;

  @IsOptional()
  @Min(1, { message: 'n must be at least 1' })
  @Max(MAX_CHOICES, { message: `n must be at most ${MAX_CHOICES}` })
  @IsInt({ message: 'n must be a whole number' })
  n?: number | null;

  @IsOptional()
  @Min(0, { message: 'temperature must be from 0 to 2' })
  @Max(2, { message: 'temperature must be from 0 to 2' })
  @IsNumber({}, { message: 'temperature must be a number' })
  temperature?: number | null;

  @IsOptional()
  @Min(0, { message: 'top_p must be from 0 to 1' })
  @Max(1, { message: 'top_p must be from 0 to 1' })
  @IsNumber({}, { message: 'top_p must be a number' })
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
    const answer: ChatAnswer = await this.commands.execute(
      new CompleteChat(caller, request.id, sourceOf(request), body),
    );
    if (answer.kind === 'whole') {
      return reply.type(JSON_TYPE).send(JSON.stringify(completion(answer.body, answer.receipt)));
    }
    await this.relay(answer, new SseClient(reply), { id: `gen-${request.id}`, model: answer.model });
  }

  /** Once events have been sent, an error can only be told by another event. */
  private async relay(answer: StreamedChat, client: SseClient, identity: { id: string; model: string }): Promise<void> {
    try {
      const { receipt, failure } = await answer.relayTo(client);
      client.end(endOfStream(identity, receipt, failure));
    } catch (error) {
      client.end(endOfStream(identity, undefined, error));
      throw error;
    }
  }
}

function areMessages(value: unknown): boolean {
  const isMessage = (each: unknown) =>
    typeof each === 'object' && each !== null && typeof (each as { role?: unknown }).role === 'string';
  return Array.isArray(value) && value.length > 0 && value.every(isMessage);
}
