/**
 * A Lightning wallet of our own behind Nostr Wallet Connect: the least that a small host needs to be paid. A reference is a
 * payment hash, and so is the id of a payment: an invoice is paid once.
 * Facts from NIP-47: amounts are millisatoshis; a transaction is settled by its `state`, or in wallets that have none by its
 * `settled_at`; what a wallet does not know any more is NOT_FOUND.
 */
import {
  type BackendPayment,
  type CreatedPayment,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
} from '#application';
import { resolveByDns } from '../../http/public-address.ts';
import { type ConnectionString, parseConnectionString } from '../../wallets/nwc/connection-string.ts';
import { Nip47Error } from '../../wallets/nwc/nip47.ts';
import { type SendWalletRequest, withWalletSession } from '../../wallets/nwc/wallet-session.ts';
import type { BackendKind } from '../backend-kind.ts';
import { unixSecondsToInstant } from '../exact-json.ts';
import { isHex32 } from '../lightning.ts';
import { createEmptySubscription } from '../no-hints.ts';

/** Asked in one conversation. */
const MAX_BATCH_SIZE = 20;

export interface NwcReceiveSettings {
  /** Its connection string: one that may receive and not pay is enough. */
  readonly nwcReceiveUrl: string | undefined;
}

export const nwc: BackendKind<NwcReceiveSettings> = {
  name: 'nwc',
  accepts: ({ code }, kind) => code === 'BTC' && kind === 'bolt11',
  open: ({ nwcReceiveUrl }) => (nwcReceiveUrl === undefined ? undefined : new NwcBackend(nwcReceiveUrl)),
};

export class NwcBackend implements PaymentBackend {
  readonly name = nwc.name;
  readonly maxBatchSize = MAX_BATCH_SIZE;
  private readonly wallet: ConnectionString;

  /** @throws Error that says what is wrong with the connection string */
  constructor(url: string) {
    this.wallet = parseConnection(url);
  }

  async createPayment({ units, memo, expirySeconds }: PaymentRequest): Promise<CreatedPayment> {
    const params = { amount: Number(units), description: memo, expiry: expirySeconds };
    const { invoice, payment_hash: hash } = await this.withSession((send) => send('make_invoice', params));
    if (typeof invoice !== 'string' || !isHex32(hash)) throw unreadableError();
    return { reference: hash, destination: { kind: 'bolt11', value: invoice }, paymentHash: hash };
  }

  fetchPayments(references: readonly string[]): Promise<readonly BackendPayment[]> {
    return this.withSession(async (send) => {
      const payments = await Promise.all(references.map((reference) => findPayment(reference, send)));
      return payments.filter((payment) => payment !== undefined);
    });
  }

  /** Notifications of wallets are lost when nobody listens, so what came is found by looking. */
  subscribe(signal: AbortSignal): AsyncIterable<string> {
    return createEmptySubscription(signal);
  }

  async close(): Promise<void> {}

  /** Its relays are the operator's choice, so they may be anywhere. */
  private async withSession<T>(runSession: (send: SendWalletRequest) => Promise<T>): Promise<T> {
    const { wallet } = this;
    try {
      return await withWalletSession(wallet, { resolve: resolveByDns, allowedRelays: wallet.relays }, runSession);
    } catch (cause) {
      if (cause instanceof UpstreamError) throw cause;
      const reason = cause instanceof Nip47Error ? `answers ${cause.code}` : 'cannot be reached';
      throw new UpstreamError('upstream_unavailable', `The Lightning wallet ${reason}`, { cause });
    }
  }
}

/** @returns undefined where nothing has come */
async function findPayment(reference: string, send: SendWalletRequest): Promise<BackendPayment | undefined> {
  const transaction = await send('lookup_invoice', { payment_hash: reference }).catch((error: unknown) => {
    if (error instanceof Nip47Error && error.code === 'NOT_FOUND') return undefined;
    throw error;
  });
  if (!transaction) return undefined;
  const { type, state, payment_hash: hash, amount, settled_at: settled } = transaction;
  if (hash !== reference || (type !== undefined && type !== 'incoming')) throw unreadableError();
  const isSettled = state === undefined ? Number(settled ?? 0) > 0 : state === 'settled';
  if (!isSettled) return undefined;
  const receivedAt = unixSecondsToInstant(settled);
  if (!Number.isSafeInteger(amount) || Number(amount) <= 0 || receivedAt === undefined) throw unreadableError();
  return { reference, id: reference, units: BigInt(Number(amount)), confirmations: 'final', receivedAt };
}

function parseConnection(url: string): ConnectionString {
  const relays = new URLSearchParams(url.replace(/^[^?]*\??/, '')).getAll('relay').map((relay) => relay.trim());
  try {
    return parseConnectionString(
      url,
      relays.filter((relay) => URL.canParse(relay)),
    );
  } catch (error) {
    throw new Error((error as Error).message.replace('nwc_url', 'NWC_RECEIVE_URL'));
  }
}

function unreadableError(): UpstreamError {
  return new UpstreamError('upstream_error', 'The Lightning wallet answered in a way that cannot be understood');
}
