import { MAX_BODY_BYTES } from '../edge/authentication/authenticator.ts';
import type { OperationOptions } from '../openapi/operation.ts';

const SEALED = {
  type: 'string',
  format: 'binary',
  description: 'Frames of ciphertext: `length (4 bytes, big endian) ‖ ciphertext`',
};

export const createPrivateChat: OperationOptions = {
  id: 'createPrivateChat',
  tag: 'Private models',
  summary: 'Relays an encrypted chat to the enclave of a private model',
  description: [
    'The body is a chat completion request, encrypted for the attested key of the enclave (EHBP). The response is encrypted as well, ',
    'and the gateway can read neither. The local proxy does all of this: see `docs/private-models.md`. ',
    'The header `X-Private-Model` names the model. `Ehbp-Encapsulated-Key` is the encapsulated key with which the enclave decrypts the body. ',
    '`Accept: text/event-stream` announces a stream; without it, the balance must cover the price of the longest possible completion. ',
    'The cost is in the trailer `X-Cost-Usd`. A response whose connection is closed before its end is incomplete. ',
    '422 means that the enclave has another key now; nothing is charged.',
  ].join(''),
  auth: 'key',
  paid: true,
  streamed: true,
  maxBytes: MAX_BODY_BYTES,
  headers: {
    'X-Private-Model': {
      description: 'The id of a private model, such as `private/gpt-oss-120b`',
      example: 'private/gpt-oss-120b',
    },
    'Ehbp-Encapsulated-Key': {
      description: 'The encapsulated key of EHBP: 64 lower-case hexadecimal digits',
      example: 'a'.repeat(64),
    },
  },
  response: { 'text/event-stream': SEALED, 'application/json': SEALED },
  errors: [402, 404, 410, 413, 422, 429, 502, 504],
};
