/** Sessions for repeatable requests to which a wallet responds at once. */
import { type WalletConnection, WalletUnreachableError } from '#application';
import { getNip47Result } from './nip47.ts';
import type { RelayConnectOptions } from './relay-connect.ts';

const RESPONSE_TIMEOUT_MS = 15_000;

export type SendWalletRequest = (method: string, params: object) => Promise<Readonly<Record<string, unknown>>>;

/**
 * Opens a session with a wallet, runs requests and closes the session. NDK is loaded only when a wallet is used,
 * because it is large and most processes never use one.
 * @param runSession its `send` rejects with Nip47Error for an error response, and with another error if no relay
 * accepts the request or no response arrives in time
 * @throws WalletUnreachableError if no relay is reachable or knows the wallet, or the wallet supports no known
 * encryption
 */
export async function withWalletSession<T>(
  wallet: Pick<WalletConnection, 'pubkey' | 'relays' | 'secret'>,
  connectOptions: RelayConnectOptions,
  runSession: (send: SendWalletRequest) => Promise<T>,
): Promise<T> {
  const { NostrSession } = await import('./nostr-session.ts');
  const session = new NostrSession(wallet, connectOptions);
  try {
    await session.open();
    const info = await session.fetchInfo();
    if (!info) throw new WalletUnreachableError('the relays have no information about the wallet');
    const { encryption } = info;
    if (!encryption) throw new WalletUnreachableError('the wallet supports neither nip44_v2 nor nip04 encryption');
    return await runSession(async (method, params) => {
      const { promise, resolve, reject } = Promise.withResolvers<Parameters<typeof getNip47Result>[0]>();
      const timer = setTimeout(() => reject(new Error('the wallet did not respond in time')), RESPONSE_TIMEOUT_MS);
      session.send({ method, params }, encryption, resolve).catch(reject);
      return getNip47Result(await promise.finally(() => clearTimeout(timer)));
    });
  } finally {
    session.close();
  }
}
