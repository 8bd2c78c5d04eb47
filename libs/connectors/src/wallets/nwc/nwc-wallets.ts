/**
 * Wallets by Nostr Wallet Connect (NIP-47). For each request relays are connected to and left again, so that nothing
 * of one customer is shared with another.
 */

import {
  InvalidRequestError,
  UpstreamError,
  type WalletConnection,
  type WalletResponse,
  Wallets,
  WalletUnreachableError,
} from '#application';
import { type Resolve, resolveByDns } from '../../http/public-address.ts';
import { parseConnectionString } from './connection-string.ts';
import { toWalletResponse } from './nip47.ts';
import type { NostrSession, WalletInfo } from './nostr-session.ts';
import type { RelayConnectOptions } from './relay-connect.ts';

/** A wallet may take this long to find a route. */
const HEARD_FOR_MS = 120_000;
/** Conversations in which an answer is waited for. Beyond them the oldest is left: an answer is only a hint. */
const MAX_HEARD = 256;
/** Wallets that are asked at the same time what they can do: each may hold connections for seconds. */
const MAX_DESCRIBED = 256;

export interface NwcOptions {
  /** Relays that may be anywhere, also without TLS. */
  readonly admitted: readonly string[];
  readonly resolve?: Resolve;
}

export class NwcWallets extends Wallets {
  private readonly heard = new Map<NostrSession, NodeJS.Timeout>();
  private readonly dialling: RelayConnectOptions;
  private described = 0;

  constructor(options: NwcOptions) {
    super();
    this.dialling = { resolve: resolveByDns, ...options };
  }

  async connect(url: string): Promise<WalletConnection> {
    const named = parseConnectionString(url, this.dialling.admitted);
    if (this.described >= MAX_DESCRIBED) {
      throw new UpstreamError('rate_limited', 'Too many wallets are being connected', { retryAfterSeconds: 5 });
    }
    this.described++;
    const info = await this.describe(named).finally(() => {
      this.described--;
    });
    if (!info) throw refused('its relays know nothing of the wallet');
    if (!info.methods.includes('pay_invoice'))
      throw refused('the wallet does not let itself be asked to pay (pay_invoice)');
    if (!info.encryption) throw refused('the wallet takes neither of the encryptions nip44_v2 and nip04');
    return { ...named, encryption: info.encryption };
  }

  async pay(wallet: WalletConnection, invoice: string, hear: (answer: WalletResponse) => void): Promise<void> {
    const session = await this.session(wallet);
    try {
      await session.open();
      const asked = session.ask({ method: 'pay_invoice', params: { invoice } }, wallet.encryption, (response) => {
        this.leave(session);
        hear(toWalletResponse(response));
      });
      this.hear(session);
      await asked;
    } catch (error) {
      if (error instanceof WalletUnreachableError) this.leave(session);
      throw error;
    }
  }

  async close(): Promise<void> {
    for (const session of this.heard.keys()) this.leave(session);
  }

  private async describe(wallet: {
    pubkey: string;
    relays: readonly string[];
    secret: string;
  }): Promise<WalletInfo | undefined> {
    const session = await this.session(wallet);
    try {
      await session.open();
      return await session.info();
    } catch (error) {
      throw error instanceof WalletUnreachableError ? refused(`the wallet cannot be reached: ${error.message}`) : error;
    } finally {
      session.close();
    }
  }

  /** NDK is large, and most processes never speak to a wallet. */
  private async session(wallet: Pick<WalletConnection, 'pubkey' | 'relays' | 'secret'>): Promise<NostrSession> {
    const { NostrSession } = await import('./nostr-session.ts');
    return new NostrSession(wallet, this.dialling);
  }

  private hear(session: NostrSession): void {
    for (const oldest of this.heard.keys()) {
      if (this.heard.size < MAX_HEARD) break;
      this.leave(oldest);
    }
    this.heard.set(
      session,
      setTimeout(() => this.leave(session), HEARD_FOR_MS),
    );
  }

  private leave(session: NostrSession): void {
    clearTimeout(this.heard.get(session));
    this.heard.delete(session);
    session.close();
  }
}

function refused(why: string): InvalidRequestError {
  return new InvalidRequestError(400, `nwc_url cannot be used: ${why}`, 'nwc_url');
}
