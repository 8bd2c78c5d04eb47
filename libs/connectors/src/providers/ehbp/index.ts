/**
 * Enclaves: chats that are encrypted for them (Encrypted HTTP Body Protocol,
 * https://github.com/tinfoilsh/encrypted-http-body-protocol), and the evidence of what they are. Usage is reported as
 * Tinfoil does: `X-Tinfoil-Usage-Metrics`, a header or, behind a stream, a trailer.
 */
import type { Provider } from '#application';
import type { ProviderClient } from '../provider.ts';
import { attestationOf } from './attestation.ts';
import { privateChat } from './private-chat.ts';

export function ehbp({ http, credential }: ProviderClient) {
  return {
    privateChat: (call) => privateChat(http, credential, call),
    attestation: (enclave, signal) => attestationOf(http, enclave, signal),
    close: () => http.close(),
  } satisfies Provider;
}
