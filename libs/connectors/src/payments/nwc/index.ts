/**
 * The operator's own Lightning wallet through Nostr Wallet Connect, the simplest way to receive payments. An invoice is
 * paid once, so the payment hash is both the reference and the id of the payment.
 *
 * Amounts are millisatoshis. `state` reports whether a transaction is settled, or `settled_at` if the wallet sends
 * no `state`. The wallet responds with NOT_FOUND for an unknown invoice.
 *
 * Source: NIP-47.
 */
import {
  type BackendPayment,
  type CreatedPayment,
  createCredentialError,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
} from '#application';
import { resolveByDns } from '../../http/public-address.ts';
import { type ConnectionString, parseConnectionString } from '../../wallets/nwc/connection-string.ts';
import { Nip47Error } from '../../wallets/nwc/nip47.ts';
import { type SendWalletRequest, withWalletSession } from '../../wallets/nwc/wallet-session.ts';
import { type BackendKind, hasSettings } from '../backend-kind.ts';
import { unixSecondsToInstant } from '../exact-json.ts';
import { isHex32 } from '../lightning.ts';
import { createEmptySubscription } from '../no-hints.ts';

/**
 * HTTP statuses of the codes with which a wallet rejects the connection string: it does not know the connection, or the
 * connection may not receive payments.
 */
const CREDENTIAL_STATUSES: ReadonlyMap<string, number> = new Map([
  ['UNAUTHORIZED', 401],
  ['RESTRICTED', 403],
]);
/** Maximum number of invoices that are looked up in one session. */
const MAX_BATCH_SIZE = 20;

export interface NwcReceiveSettings {
  /** The connection string of the receiving wallet. It needs no permission to pay. */
  readonly nwcReceiveUrl: string | undefined;
}

export const nwc: BackendKind<NwcReceiveSettings> = {
  name: 'nwc',
  credentialSetting: 'NWC_RECEIVE_URL',
  accepts: ({ code }, kind) => code === 'BTC' && kind === 'bolt11',
  open: (settings) => (hasSettings(settings, 'nwcReceiveUrl') ? new NwcBackend(settings) : undefined),
};

export class NwcBackend implements PaymentBackend {
  readonly name = nwc.name;
  readonly maxBatchSize = MAX_BATCH_SIZE;

  /** @throws Error if the connection string is invalid */
  constructor(private readonly settings: { readonly nwcReceiveUrl: string }) {
    parseConnection(settings.nwcReceiveUrl);
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

  /** Notifications of wallets are lost without a listener, so payments are found by polling. */
  subscribe(signal: AbortSignal): AsyncIterable<string> {
    return createEmptySubscription(signal);
  }

  async close(): Promise<void> {}

  /** The operator has chosen the relays, so private addresses are allowed. */
  private async withSession<T>(runSession: (send: SendWalletRequest) => Promise<T>): Promise<T> {
    try {
      const wallet = parseConnection(this.settings.nwcReceiveUrl);
      return await withWalletSession(wallet, { resolve: resolveByDns, allowedRelays: wallet.relays }, runSession);
    } catch (cause) {
      if (cause instanceof UpstreamError) throw cause;
      const reason = cause instanceof Nip47Error ? `responded with ${cause.code}` : 'cannot be reached';
      const rejectedStatus = cause instanceof Nip47Error ? CREDENTIAL_STATUSES.get(cause.code) : undefined;
      if (rejectedStatus !== undefined) throw createCredentialError(`The Lightning wallet ${reason}`, rejectedStatus);
      throw new UpstreamError('upstream_unavailable', `The Lightning wallet ${reason}`, { cause });
    }
  }
}

/** @returns undefined if the invoice is unknown or not paid */
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
  return new UpstreamError('upstream_error', 'The Lightning wallet sent an unreadable response');
}
