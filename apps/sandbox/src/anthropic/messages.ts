/** `POST /anthropic/v1/messages`. */
import type { SandboxBill } from '../bill.ts';
import { createHandler } from '../provider/serve.ts';
import type { Routes } from '../router.ts';
import { assertHeaders, createFaultError, invalidRequestError } from './errors.ts';
import { readMessagesRequest } from './messages-request.ts';
import { createIdentityHeaders, createMessage, getMessageId, toEvents } from './response.ts';

export function messagesRoutes(bill: SandboxBill): Routes {
  const handle = createHandler('anthropic', bill, {
    createFaultError,
    createDirectiveError: invalidRequestError,
    getId: getMessageId,
    getHeaders: createIdentityHeaders,
    toResponseBody: createMessage,
    toEvents,
  });
  return {
    'POST /anthropic/v1/messages': async (call) => {
      const version = assertHeaders(call);
      await handle(
        call,
        readMessagesRequest(await call.readText(), version, String(call.request.headers['anthropic-beta'] ?? '')),
      );
    },
  };
}
