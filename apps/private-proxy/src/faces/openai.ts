/** OpenAI's face: a chat goes to the enclave as it came but for the name of its model, and its answer comes back as it is. */

import { sseEvent, type Thing } from '#application/messages';
import { eventsOf, wholeAnswer } from '../answers.ts';
import type { Exchange } from '../exchanges.ts';
import { Failure } from '../failure.ts';
import type { MeantModel } from '../model-names.ts';
import type { Face } from './face.ts';

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'insufficient_balance',
  403: 'permission_error',
  429: 'rate_limit_error',
};

function error({ status, message, type, code, param }: Failure) {
  const byStatus = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'proxy_error');
  return { error: { message, type: type ?? byStatus, param, code } };
}

export const OPENAI: Face = {
  name: 'openai',
  error,
  errorEvent: (failure) => sseEvent(JSON.stringify(error(failure))),
  keepAlive: ': waiting\n\n',
};

/** @throws Failure that names the field that is wrong */
export function chatExchange(body: Thing, { id: model }: MeantModel): Exchange {
  const { messages, stream } = body;
  if (!Array.isArray(messages)) throw new Failure(400, 'messages must be an array', { param: 'messages' });
  if (typeof (stream ?? false) !== 'boolean') throw new Failure(400, 'stream must be a boolean', { param: 'stream' });
  return {
    chat: { ...body, model },
    whole: async ({ pieces }) => (await wholeAnswer(pieces)).bytes,
    async *events({ pieces }) {
      for await (const events of eventsOf(pieces)) yield events.map(({ text }) => `${text}\n\n`).join('');
    },
  };
}
