import { toUsdJsonNumber } from '#kernel';
import type { AutoTopupView } from '#projections';

const NONE = {
  ...{ connected: false, enabled: false, nwc_url: null, threshold_usd: null, topup_amount_usd: null },
  ...{ state: 'disconnected', paused_until: null, last_topup_at: null, last_error: null, last_error_code: null },
  ...{ last_error_at: null, last_attempt: null, created_at: null, updated_at: null },
};

/** The same fields at the root and in `data`: clients look in one place or the other. */
export function toAutoTopupJson(view: AutoTopupView | undefined, now: string) {
  if (!view) return { status: 'success', ...NONE, data: null };
  const fields = fieldsOf(view, now);
  return { status: 'success', ...fields, data: fields.connected ? fields : null };
}

function fieldsOf(view: AutoTopupView, now: string) {
  const { wallet, attempt, paused, paidAt, changedAt, connectedAt } = view;
  const error = errorOf(view);
  const isPaused = paused !== undefined && paused.until > now;
  return {
    connected: wallet !== undefined,
    enabled: wallet !== undefined,
    nwc_url: wallet ? redacted(wallet) : null,
    threshold_usd: wallet ? toUsdJsonNumber(view.threshold) : null,
    topup_amount_usd: wallet ? toUsdJsonNumber(view.amount) : null,
    state: stateOf(view, isPaused),
    paused_until: isPaused ? paused.until : null,
    last_topup_at: paidAt,
    last_error: error?.message ?? null,
    last_error_code: error?.code ?? null,
    last_error_at: error?.at ?? null,
    last_attempt: attempt
      ? {
          invoice_id: attempt.topupId,
          amount_usd: toUsdJsonNumber(attempt.amount),
          ...{ state: attempt.state, requests: attempt.requests, started_at: attempt.at, ended_at: attempt.endedAt },
        }
      : null,
    created_at: wallet ? connectedAt : null,
    updated_at: changedAt,
  };
}

/** A wallet that says nothing, or that it has paid, has made no mistake that it told. */
function errorOf({ attempt, error, connectedAt }: AutoTopupView): AutoTopupView['error'] {
  if (error || !attempt || attempt.state !== 'expired' || attempt.requests === 0) return error;
  if (attempt.endedAt === null || attempt.endedAt < connectedAt) return undefined; // it was another wallet
  const message = 'The wallet was asked to pay an invoice, and no payment came before it expired';
  return { code: 'EXPIRED', message, at: attempt.endedAt };
}

function stateOf({ wallet, attempt }: AutoTopupView, isPaused: boolean): string {
  if (!wallet) return 'disconnected';
  if (isPaused) return 'paused';
  if (attempt && attempt.endedAt === null) return 'topping_up';
  return attempt?.state === 'expired' || attempt?.state === 'failed' ? 'waiting' : 'idle';
}

/** Its secret can spend, so it is not shown, not even to its owner. */
function redacted({ pubkey, relays }: NonNullable<AutoTopupView['wallet']>): string {
  const named = relays.map((each) => `relay=${encodeURIComponent(each)}&`).join('');
  return `nostr+walletconnect://${pubkey}?${named}secret=***`;
}
