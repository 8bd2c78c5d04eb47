/**
 * Wallets through Nostr Wallet Connect (NIP-47). Each request has its own connections to relays, so that customers
 * share nothing.
 */

import {
  InvalidRequestError,
  UpstreamError,
  type WalletConnection,
  type WalletResponse,
  Wallets,
  WalletUnreachableError,
} from '#application';
import { type ResolveHostname, resolveByDns } from '../../http/public-address.ts';
import { parseConnectionString } from './connection-string.ts';
import { toWalletResponse } from './nip47.ts';
import type { NostrSession, WalletInfo } from './nostr-session.ts';
import type { RelayConnectOptions } from './relay-connect.ts';

/** How long a response to a payment request is waited for. A wallet can take this long to find a route. */
const RESPONSE_WAIT_MS = 120_000;
/** Maximum number of sessions that wait for a response. Beyond it the oldest is closed. */
const MAX_WAITING_SESSIONS = 256;
/** Maximum number of concurrent `connect` calls, because each can use connections for seconds. */
const MAX_CONCURRENT_CONNECTS = 256;

export interface NwcOptions {
  /** Relays that may have private addresses and may be used without TLS. */
  readonly allowedRelays: readonly string[];
  readonly resolve?: ResolveHostname;
}

export class NwcWallets extends Wallets {
  private readonly waitingSessions = new Map<NostrSession, NodeJS.Timeout>();
  private readonly connectOptions: RelayConnectOptions;
  private connectCount = 0;

  constructor(options: NwcOptions) {
    super();
    this.connectOptions = { resolve: resolveByDns, ...options };
  }

  async connect(url: string): Promise<WalletConnection> {
    const connection = parseConnectionString(url, this.connectOptions.allowedRelays);
    if (this.connectCount >= MAX_CONCURRENT_CONNECTS) {
      throw new UpstreamError('rate_limited', 'Too many wallets are being connected at the moment; retry later', {
        retryAfterSeconds: 5,
      });
    }
    this.connectCount++;
    const info = await this.fetchInfo(connection).finally(() => {
      this.connectCount--;
    });
    if (!info) throw invalidNwcUrl('its relays have no information about the wallet');
    if (!info.methods.includes('pay_invoice'))
      throw invalidNwcUrl('the wallet does not support payment requests (pay_invoice)');
    if (!info.encryption) throw invalidNwcUrl('the wallet supports neither nip44_v2 nor nip04 encryption');
    return { ...connection, encryption: info.encryption };
  }

  async pay(wallet: WalletConnection, invoice: string, onResponse: (response: WalletResponse) => void): Promise<void> {
    const session = await this.createSession(wallet);
    try {
      await session.open();
      const sent = session.send({ method: 'pay_invoice', params: { invoice } }, wallet.encryption, (response) => {
        this.closeSession(session);
        onResponse(toWalletResponse(response));
      });
      this.trackSession(session);
      await sent;
    } catch (error) {
      if (error instanceof WalletUnreachableError) this.closeSession(session);
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const session of this.waitingSessions.keys()) this.closeSession(session);
  }

  private async fetchInfo(wallet: {
    pubkey: string;
    relays: readonly string[];
    secret: string;
  }): Promise<WalletInfo | undefined> {
    const session = await this.createSession(wallet);
    try {
      await session.open();
      return await session.fetchInfo();
    } catch (error) {
      throw error instanceof WalletUnreachableError
        ? invalidNwcUrl(`the wallet cannot be reached: ${error.message}`)
        : error;
    } finally {
      session.close();
    }
  }

  /** Loads NDK only when a wallet is used, because it is large and most processes never use one. */
  private async createSession(wallet: Pick<WalletConnection, 'pubkey' | 'relays' | 'secret'>): Promise<NostrSession> {
    const { NostrSession } = await import('./nostr-session.ts');
    return new NostrSession(wallet, this.connectOptions);
  }

  private trackSession(session: NostrSession): void {
    for (const oldest of this.waitingSessions.keys()) {
      if (this.waitingSessions.size < MAX_WAITING_SESSIONS) break;
      this.closeSession(oldest);
    }
    this.waitingSessions.set(
      session,
      setTimeout(() => this.closeSession(session), RESPONSE_WAIT_MS),
    );
  }

  private closeSession(session: NostrSession): void {
    clearTimeout(this.waitingSessions.get(session));
    this.waitingSessions.delete(session);
    session.close();
  }
}

function invalidNwcUrl(reason: string): InvalidRequestError {
  return new InvalidRequestError(400, `nwc_url cannot be used: ${reason}`, 'nwc_url');
}
