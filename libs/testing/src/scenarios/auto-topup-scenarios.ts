/** Generates automatic top-ups up to any point of their life cycle. */
import fc from 'fast-check';
import type { AutoTopupCommand, AutoTopupState } from '#domain';
import { parseUsd } from '#kernel';

export interface AutoTopupAttempt {
  readonly outcome: 'sent' | 'lost';
  readonly code: string;
  readonly end: 'paid' | 'expired' | 'failed' | 'dropped';
  /** How many of its commands are executed. */
  readonly steps: number;
}

export const autoTopupAttempts: fc.Arbitrary<AutoTopupAttempt> = fc.record({
  outcome: fc.constantFrom('sent', 'lost'),
  code: fc.constantFrom('PAID', 'PAYMENT_FAILED', 'QUOTA_EXCEEDED'),
  end: fc.constantFrom('paid', 'expired', 'failed', 'dropped'),
  steps: fc.integer({ min: 1, max: 8 }),
});

/** Returns the commands of an attempt. Continues the open attempt, if there is one. */
export function createAttemptCommands(
  walletNumber: number,
  { attempts: attemptCount = 0, attempt: openAttempt }: Partial<AutoTopupState> = {},
  { outcome, code, end, steps }: AutoTopupAttempt,
  { at, expiresAt }: { readonly at: string; readonly expiresAt: string },
): readonly AutoTopupCommand[] {
  const limits = { attempts: 9, amount: parseUsd('80') };
  const attemptStart = {
    attempt: attemptCount + 1,
    topupId: `auto ${walletNumber} ${attemptCount}`,
    balance: parseUsd('9'),
    limits,
    at,
  };
  const attempt = openAttempt?.number ?? attemptCount + 1;
  const request = (openAttempt?.requests ?? 0) + 1;
  const requestRef = { attempt, request, at };
  const requestOutcome =
    outcome === 'sent'
      ? ({ isKnown: true, result: { sent: true } } as const)
      : ({ isKnown: false, reason: 'it ended' } as const);
  const commands: readonly AutoTopupCommand[] = [
    { type: 'ConnectWallet', data: { ...createConnection(walletNumber), at } },
    { type: 'BeginAutoTopup', data: attemptStart },
    { type: 'RecordInvoice', data: { attempt, invoice: 'lnbcrt1', expiresAt, at } },
    { type: 'BeginRequest', data: { ...requestRef, token: request } },
    { type: 'EndRequest', data: { ...requestRef, outcome: requestOutcome } },
    { type: 'RecordAnswer', data: { ...requestRef, code, why: 'as the wallet says' } },
    { type: 'EndAutoTopup', data: { attempt, outcome: end, at } },
    { type: 'DisconnectWallet', data: { at } },
  ];
  return commands.slice(0, steps);
}

function createConnection(walletNumber: number) {
  const wallet = {
    pubkey: String(walletNumber).repeat(64),
    relays: ['wss://relay.example'],
    encryption: 'nip44_v2',
  } as const;
  const amounts = { threshold: parseUsd('10').toString(), amount: parseUsd('12').toString() };
  return { wallet, secret: { key: '1', box: `box of ${walletNumber}` }, ...amounts };
}
