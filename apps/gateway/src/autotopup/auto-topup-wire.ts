import { toUsdJsonNumber } from '#kernel';
import type { AutoTopupView } from '#projections';

const DISCONNECTED_FIELDS = {
  connected: false,
  enabled: false,
  nwc_url: null,
  threshold_usd: null,
  topup_amount_usd: null,
  state: 'disconnected',
  paused_until: null,
  last_topup_at: null,
  last_error: null,
  last_error_code: null,
  last_error_at: null,
  last_attempt: null,
  created_at: null,
  updated_at: null,
};

/**
 * Returns the fields at the root and, if a wallet is connected, also in `data`: some clients read the one and some the
 * other.
 */
export function toAutoTopupJson(view: AutoTopupView | undefined, now: string) {
  if (!view) return { status: 'success', ...DISCONNECTED_FIELDS, data: null };
  const fields = toAutoTopupFields(view, now);
  return { status: 'success', ...fields, data: fields.connected ? fields : null };
}

function toAutoTopupFields(view: AutoTopupView, now: string) {
  const { wallet, attempt, paused, paidAt, changedAt, connectedAt } = view;
  const error = getLastError(view);
  const isPaused = paused !== undefined && paused.until > now;
  return {
    connected: wallet !== undefined,
    enabled: wallet !== undefined,
    nwc_url: wallet ? redactWalletUrl(wallet) : null,
    threshold_usd: wallet ? toUsdJsonNumber(view.threshold) : null,
    topup_amount_usd: wallet ? toUsdJsonNumber(view.amount) : null,
    state: getState(view, isPaused),
    paused_until: isPaused ? paused.until : null,
    last_topup_at: paidAt,
    last_error: error?.message ?? null,
    last_error_code: error?.code ?? null,
    last_error_at: error?.at ?? null,
    last_attempt: attempt
      ? {
          invoice_id: attempt.topupId,
          amount_usd: toUsdJsonNumber(attempt.amount),
          state: attempt.state,
          requests: attempt.requests,
          started_at: attempt.at,
          ended_at: attempt.endedAt,
        }
      : null,
    created_at: wallet ? connectedAt : null,
    updated_at: changedAt,
  };
}

/**
 * Returns the recorded error; undefined without one. If none is recorded, but the last attempt requested a payment and
 * has expired since the wallet was connected, the code is EXPIRED.
 */
function getLastError({ attempt, error, connectedAt }: AutoTopupView): AutoTopupView['error'] {
  if (error || !attempt || attempt.state !== 'expired' || attempt.requests === 0) return error;
  if (attempt.endedAt === null || attempt.endedAt < connectedAt) return undefined; // of an earlier connection
  const message = 'A payment request was sent to the wallet, but the invoice expired without a payment';
  return { code: 'EXPIRED', message, at: attempt.endedAt };
}

function getState({ wallet, attempt }: AutoTopupView, isPaused: boolean): string {
  if (!wallet) return 'disconnected';
  if (isPaused) return 'paused';
  if (attempt && attempt.endedAt === null) return 'topping_up';
  return attempt?.state === 'expired' || attempt?.state === 'failed' ? 'waiting' : 'idle';
}

/**
 * Returns the connection string without its secret, which can spend money. The secret is never returned, not even to
 * the account's owner.
 */
function redactWalletUrl({ pubkey, relays }: NonNullable<AutoTopupView['wallet']>): string {
  const relayParams = relays.map((relay) => `relay=${encodeURIComponent(relay)}&`).join('');
  return `nostr+walletconnect://${pubkey}?${relayParams}secret=***`;
}
