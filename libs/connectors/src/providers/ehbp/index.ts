/**
 * Enclaves: chats that are encrypted for an enclave (Encrypted HTTP Body Protocol,
 * https://github.com/tinfoilsh/encrypted-http-body-protocol), and attestations. Usage is reported in Tinfoil's
 * `X-Tinfoil-Usage-Metrics`: a header, or a trailer after a stream.
 */
import type { Provider } from '#application';
import type { ProviderClient } from '../provider.ts';
import { fetchAttestation } from './attestation.ts';
import { sendPrivateChat } from './private-chat.ts';

export function createEhbpProvider({ http, credential }: ProviderClient) {
  return {
    privateChat: (call) => sendPrivateChat(http, credential, call),
    attestation: (enclave, signal) => fetchAttestation(http, enclave, signal),
    close: () => http.close(),
  } satisfies Provider;
}
