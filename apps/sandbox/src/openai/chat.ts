/** `POST /openai/v1/chat/completions`, and the same of vendors that copy it: read, judge, compose, deliver, bill. */
import type { SandboxBill } from '../bill.ts';
import { serve } from '../provider/serve.ts';
import type { Call, Routes } from '../router.ts';
import { readChatRequest } from './chat-request.ts';
import { completion } from './completion.ts';
import { assertKey, refusal, refusalAsTold } from './errors.ts';
import { answerId, identityHeaders } from './identity.ts';
import type { OpenAiProvider } from './models.ts';
import { eventsOf } from './stream.ts';

export function chatRoutes(provider: OpenAiProvider, bill: SandboxBill): Routes {
  const handle = serve(provider.name, bill, {
    refusalAsTold,
    misunderstood: (message) => refusal(400, message, 'messages', 'sandbox_directive'),
    idOf: answerId,
    headersOf: identityHeaders,
    wholeOf: completion,
    eventsOf,
  });
  return {
    [`POST /${provider.name}/v1/chat/completions`]: async (call: Call) => {
      assertKey(call);
      await handle(call, readChatRequest(await call.text(), provider));
    },
  };
}
