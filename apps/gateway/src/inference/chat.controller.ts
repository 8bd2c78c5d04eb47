import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, CompleteChat, toToolsRequest } from '#application';
import { CurrentCaller } from '../edge/authentication/authenticator.ts';
import { getQuerySource, PaidRequestHandler } from '../edge/idempotency/paid-request-handler.ts';
import { jsonContent, Operation, sseContent } from '../openapi/operation.ts';
import { ChatRequest } from './chat.requests.ts';
import { ChatCompletion, ChatCompletionChunk } from './chat.schemas.ts';
import { ChatStreamWriter, toChatCompletion } from './chat-response.ts';

@Controller()
export class ChatController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
  ) {}

  @Post(['v1/chat/completions', 'chat/completions'])
  @HttpCode(200)
  @Operation({
    id: 'createChatCompletion',
    tag: 'Inference',
    summary: 'Completes a chat',
    description:
      'OpenAI’s chat completions. Money is held first; the actual cost is in `usage`. Other fields of OpenAI’s API are forwarded if the model supports them.',
    auth: 'key',
    paid: true,
    searches: true,
    body: ChatRequest,
    example: { model: 'openai/gpt-5.4-mini', messages: [{ role: 'user', content: 'Hello' }] },
    response: { ...jsonContent(ChatCompletion), ...sseContent(ChatCompletionChunk) },
    errors: [402, 404, 409, 410, 429, 502, 504],
  })
  async complete(
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: ChatRequest,
  ) {
    await this.paid.serveOnce(request, reply, caller, async (payer, connection) => {
      const toolsRequest = toToolsRequest(body);
      const chat = toolsRequest?.body ?? body;
      const writer = body.stream ? new ChatStreamWriter(reply, chat.model, toolsRequest?.translate) : undefined;
      const params = { requestId: request.id, source: getQuerySource(request), connection, body: chat } as const;
      const { created } = writer ?? {};
      const result = await this.commands.execute(
        new CompleteChat(payer, { ...params, type: 'chat_completion', created }, writer),
      );
      if (!result) return;
      const response = toChatCompletion(result.body, result.receipt);
      reply.type('application/json').send(JSON.stringify(toolsRequest?.translate(response) ?? response));
    });
  }
}
