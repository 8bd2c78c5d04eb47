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
  summary: 'Passes an encrypted chat on to the enclave of a private model',
  description: [
    'The body is a chat completion, encrypted for the attested key of the enclave (EHBP); the answer comes back encrypted, ',
    'and the service reads neither. The local proxy does all this: see `docs/private-models.md`. ',
    'The header `X-Private-Model` says which model, `Ehbp-Encapsulated-Key` what the enclave opens the body with. ',
    '`Accept: text/event-stream` says that the answer is to be a stream; without it the balance must be enough for the longest answer. ',
    'Its cost stands in the trailer `X-Cost-Usd`. An answer whose connection breaks is not whole, whatever has come of it. ',
    '422 means that the key is not the enclave’s any more; nothing is charged then.',
  ].join(''),
  auth: 'key',
  paid: true,
  streamed: true,
  maxBytes: MAX_BODY_BYTES,
  headers: {
    'X-Private-Model': { description: 'Such as `private/gpt-oss-120b`', example: 'private/gpt-oss-120b' },
    'Ehbp-Encapsulated-Key': {
      description: '64 lower-case hexadecimal digits',
      example: 'a'.repeat(64),
    },
  },
  response: { 'text/event-stream': SEALED, 'application/json': SEALED },
  errors: [402, 404, 413, 422, 429, 502, 504],
};
