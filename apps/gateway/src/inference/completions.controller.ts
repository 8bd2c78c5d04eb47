import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, CompleteChat, toChatRequest } from '#application';
import { CurrentCaller } from '../edge/authentication/authenticator.ts';
import { getQuerySource, PaidRequestHandler } from '../edge/idempotency/paid-request-handler.ts';
import { jsonContent, Operation, sseContent } from '../openapi/operation.ts';
import { ChatStreamWriter, toChatCompletion } from './chat-response.ts';
import { CompletionRequest } from './completions.requests.ts';
import { TextCompletion, TextCompletionChunk } from './completions.schemas.ts';

@Controller()
export class CompletionsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
  ) {}

  @Post(['v1/completions', 'completions'])
  @HttpCode(200)
  @Operation({
    id: 'createCompletion',
    tag: 'Inference',
    summary: 'Completes a text',
    description:
      'OpenAI’s legacy text completions, with every chat model: the prompt becomes the only message of a chat. Without `max_tokens`, only the model and the available money limit the completion.',
    auth: 'key',
    paid: true,
    searches: true,
    body: CompletionRequest,
    example: { model: 'openai/gpt-5.4-mini', prompt: 'Hello' },
    response: { ...jsonContent(TextCompletion), ...sseContent(TextCompletionChunk) },
    errors: [402, 404, 409, 410, 429, 502, 504],
  })
  async complete(
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: CompletionRequest,
  ) {
    await this.paid.serveOnce(request, reply, caller, async (payer, connection) => {
      const { body: chat, translate } = toChatRequest(body);
      const writer = body.stream ? new ChatStreamWriter(reply, chat.model, translate) : undefined;
      const params = {
        requestId: request.id,
        source: getQuerySource(request),
        body: chat,
        type: 'completion',
      } as const;
      const { created } = writer ?? {};
      const result = await this.commands.execute(new CompleteChat(payer, { ...params, connection, created }, writer));
      if (result)
        reply.type('application/json').send(JSON.stringify(translate(toChatCompletion(result.body, result.receipt))));
    });
  }
}
