/** Automatic top-ups, up to any point of their lives. */
import fc from 'fast-check';
import type { AutoTopupCommand, AutoTopupState } from '#domain';
import { parseUsd } from '#kernel';

export interface AutoTopupAttempt {
  readonly outcome: 'sent' | 'lost';
  readonly code: string;
  readonly end: 'paid' | 'expired' | 'failed' | 'dropped';
  /** How much of it happens. */
  readonly steps: number;
}

export const attempts: fc.Arbitrary<AutoTopupAttempt> = fc.record({
  outcome: fc.constantFrom('sent', 'lost'),
  code: fc.constantFrom('PAID', 'PAYMENT_FAILED', 'QUOTA_EXCEEDED'),
  end: fc.constantFrom('paid', 'expired', 'failed', 'dropped'),
  steps: fc.integer({ min: 1, max: 8 }),
});

/** The commands of an attempt, which may be one that is open already. */
export function lifeOf(
  nr: number,
  { attempts: so = 0, attempt: open }: Partial<AutoTopupState> = {},
  { outcome, code, end, steps }: AutoTopupAttempt,
  { at, expiresAt }: { readonly at: string; readonly expiresAt: string },
): readonly AutoTopupCommand[] {
  const limits = { attempts: 9, amount: parseUsd('80') };
  const begun = { attempt: so + 1, topupId: `auto ${nr} ${so}`, balance: parseUsd('9'), limits, at };
  const attempt = open?.number ?? so + 1;
  const request = (open?.requests ?? 0) + 1;
  const asked = { attempt, request, at };
  const made =
    outcome === 'sent'
      ? ({ isKnown: true, result: { sent: true } } as const)
      : ({ isKnown: false, reason: 'it ended' } as const);
  const life: readonly AutoTopupCommand[] = [
    { type: 'ConnectWallet', data: { ...connection(nr), at } },
    { type: 'BeginAutoTopup', data: begun },
    { type: 'RecordInvoice', data: { attempt, invoice: 'lnbcrt1', expiresAt, at } },
    { type: 'BeginRequest', data: { ...asked, token: request } },
    { type: 'EndRequest', data: { ...asked, outcome: made } },
    { type: 'RecordAnswer', data: { ...asked, code, why: 'as the wallet says' } },
    { type: 'EndAutoTopup', data: { attempt, outcome: end, at } },
    { type: 'DisconnectWallet', data: { at } },
  ];
  return life.slice(0, steps);
}

function connection(nr: number) {
  const wallet = { pubkey: String(nr).repeat(64), relays: ['wss://relay.example'], encryption: 'nip44_v2' } as const;
  const amounts = { threshold: parseUsd('10').toString(), amount: parseUsd('12').toString() };
  return { wallet, secret: { key: '1', box: `box of ${nr}` }, ...amounts };
}
