/** `:generateContent` and `:streamGenerateContent` of Gemini's chat models. */
import type { SandboxBill } from '../bill.ts';
import { createHandler } from '../provider/serve.ts';
import type { Call } from '../router.ts';
import type { ChatModel } from './chat-models.ts';
import { type GeminiChatRequest, readChatRequest } from './chat-request.ts';
import { createChatResponse, getChatId, toChatEvents } from './chat-response.ts';
import { createError, createFaultError } from './errors.ts';

export function createChatHandler(bill: SandboxBill) {
  const handle = createHandler<ChatModel, GeminiChatRequest>('google', bill, {
    createFaultError,
    createDirectiveError: (message) => createError(400, message),
    getId: getChatId,
    getHeaders: () => ({}),
    toResponseBody: createChatResponse,
    toEvents: toChatEvents,
    blocksPrompts: true,
  });
  return async (call: Call, model: ChatModel, stream: boolean): Promise<void> =>
    handle(call, readChatRequest(await call.readText(), model, stream));
}
