/** `POST /anthropic/v1/messages`. */
import type { SandboxBill } from '../bill.ts';
import { serve } from '../provider/serve.ts';
import type { Routes } from '../router.ts';
import { assertHeaders, invalid, refusalAsTold } from './errors.ts';
import { readMessagesRequest } from './messages-request.ts';
import { eventsOf, identityHeaders, message, messageId } from './response.ts';

export function messagesRoutes(bill: SandboxBill): Routes {
  const handle = serve('anthropic', bill, {
    refusalAsTold,
    misunderstood: invalid,
    idOf: messageId,
    headersOf: identityHeaders,
    wholeOf: message,
    eventsOf,
  });
  return {
    'POST /anthropic/v1/messages': async (call) => {
      const version = assertHeaders(call);
      await handle(call, readMessagesRequest(await call.text(), version));
    },
  };
}
