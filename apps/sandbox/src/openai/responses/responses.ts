/** `POST /openai/v1/responses`. Nothing is stored: to continue, a client sends the whole conversation. */
import type { SandboxBill } from '../../bill.ts';
import { serve } from '../../provider/serve.ts';
import type { Call, Routes } from '../../router.ts';
import { assertKey, refusal, refusalAsTold } from '../errors.ts';
import { identityHeaders } from '../identity.ts';
import type { OpenAiProvider } from '../models.ts';
import { finished, responseId } from './output.ts';
import { readResponsesRequest } from './request.ts';
import { eventsOf } from './stream.ts';

export function responsesRoutes(provider: OpenAiProvider, bill: SandboxBill): Routes {
  const handle = serve(provider.name, bill, {
    refusalAsTold,
    misunderstood: (message) => refusal(400, message, 'input', 'sandbox_directive'),
    idOf: responseId,
    headersOf: identityHeaders,
    wholeOf: finished,
    eventsOf,
  });
  return {
    [`POST /${provider.name}/v1/responses`]: async (call: Call) => {
      assertKey(call);
      await handle(call, readResponsesRequest(await call.text(), provider));
    },
  };
}
