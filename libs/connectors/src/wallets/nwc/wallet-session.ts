/** Conversations with a wallet that answers at once: for what can be asked as often as one likes. */
import { type WalletConnection, WalletUnreachableError } from '#application';
import { getNip47Result } from './nip47.ts';
import type { RelayConnectOptions } from './relay-connect.ts';

const RESPONSE_TIMEOUT_MS = 15_000;

export type SendWalletRequest = (method: string, params: object) => Promise<Readonly<Record<string, unknown>>>;

/**
 * Connects to a wallet, asks it something, and leaves. NDK is large, and most processes never speak to a wallet: so it is
 * loaded here.
 * @param runSession its questions fail with Nip47Error as the wallet answers, or with Error when it does not in time
 * @throws WalletUnreachableError
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
    if (!info) throw new WalletUnreachableError('its relays know nothing of the wallet');
    const { encryption } = info;
    if (!encryption) throw new WalletUnreachableError('it takes no encryption that is known here');
    return await runSession(async (method, params) => {
      const { promise, resolve, reject } = Promise.withResolvers<Parameters<typeof getNip47Result>[0]>();
      const timer = setTimeout(() => reject(new Error('the wallet has not answered in time')), RESPONSE_TIMEOUT_MS);
      session.send({ method, params }, encryption, resolve).catch(reject);
      return getNip47Result(await promise.finally(() => clearTimeout(timer)));
    });
  } finally {
    session.close();
  }
}
