/** `POST /openai/v1/chat/completions`, and the same route of other providers with OpenAI's API. */
import type { SandboxBill } from '../bill.ts';
import { createHandler } from '../provider/serve.ts';
import type { Call, Routes } from '../router.ts';
import { readChatRequest } from './chat-request.ts';
import { createCompletion } from './completion.ts';
import { assertKey, createFaultError, invalidRequestError } from './errors.ts';
import { createIdentityHeaders, getCompletionId } from './identity.ts';
import type { OpenAiProvider } from './models.ts';
import { toEvents } from './stream.ts';

export function chatRoutes(provider: OpenAiProvider, bill: SandboxBill): Routes {
  const handle = createHandler(provider.name, bill, {
    createFaultError,
    createDirectiveError: (message) => invalidRequestError(400, message, 'messages', 'sandbox_directive'),
    getId: getCompletionId,
    getHeaders: createIdentityHeaders,
    toResponseBody: createCompletion,
    toEvents,
  });
  return {
    [`POST /${provider.name}/v1/chat/completions`]: async (call: Call) => {
      assertKey(call);
      await handle(call, readChatRequest(await call.readText(), provider));
    },
  };
}
