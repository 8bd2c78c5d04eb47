/** `POST /openai/v1/responses`. Responses are not stored: to continue, a client sends the full conversation. */
import type { SandboxBill } from '../../bill.ts';
import { createHandler } from '../../provider/serve.ts';
import type { Call, Routes } from '../../router.ts';
import { assertKey, createFaultError, invalidRequestError } from '../errors.ts';
import { createIdentityHeaders } from '../identity.ts';
import type { OpenAiProvider } from '../models.ts';
import { createFinishedResponse, getResponseId } from './output.ts';
import { readResponsesRequest } from './request.ts';
import { toEvents } from './stream.ts';

export function responsesRoutes(provider: OpenAiProvider, bill: SandboxBill): Routes {
  const handle = createHandler(provider.name, bill, {
    createFaultError,
    createDirectiveError: (message) => invalidRequestError(400, message, 'input', 'sandbox_directive'),
    getId: getResponseId,
    getHeaders: createIdentityHeaders,
    toResponseBody: createFinishedResponse,
    toEvents,
  });
  return {
    [`POST /${provider.name}/v1/responses`]: async (call: Call) => {
      assertKey(call);
      await handle(call, readResponsesRequest(await call.readText(), provider));
    },
  };
}
