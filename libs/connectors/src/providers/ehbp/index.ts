/**
 * Enclaves: chats that are encrypted for them (Encrypted HTTP Body Protocol,
 * https://github.com/tinfoilsh/encrypted-http-body-protocol), and the evidence of what they are. Usage is reported as
 * Tinfoil does: `X-Tinfoil-Usage-Metrics`, a header or, behind a stream, a trailer.
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
