/** The next steps of an account's automatic top-up. */
import {
  type EffectStep,
  money,
  type PicoUsd,
  type QueryStep,
  type SendStep,
  type StoredEvent,
  type Workflow,
  type WorkflowPlan,
} from '#kernel';
import { ACCOUNT, type AccountEvent, AUTO_TOPUP, getStreamId } from '../events.ts';
import type { Instant } from '../value-types.ts';
import { addMilliseconds } from './backoff.ts';
import { type AutoTopupCommand, autoTopupDecider, canRequestPayment, getBlockedUntil } from './decide.ts';
import type { AutoTopupEvent } from './events.ts';
import type { AutoTopupState, OpenAttempt } from './state.ts';

/** How often the invoice of an open attempt is checked. Every credit also triggers a check, see `findAffectedId`. */
const POLL_INTERVAL_MS = 2_000;
/** How often a balance is checked if no event has reduced it. */
const IDLE_POLL_INTERVAL_MS = 3_600_000;
/** A payment that was made in time becomes visible at most this long after the expiry of its invoice. */
const EXPIRY_MARGIN_MS = 60_000;

/** Maximum number of concurrent wallet requests. They run detached from other work, because relays can take seconds. */
const MAX_CONCURRENT_REQUESTS = 1_024;

export type AutoTopupQuery =
  /** Checks whether the balance is below the threshold. If so, the attempt starts. */
  | { readonly type: 'balance'; readonly attempt: number; readonly threshold: PicoUsd }
  /** Checks whether the invoice of an attempt is paid. */
  | {
      readonly type: 'invoice';
      readonly attempt: number;
      readonly topupId: string;
      /** The invoice can no longer be paid. If it is unpaid, the attempt ends. */
      readonly hasExpired: boolean;
    };

/** Creates the top-up of an attempt, or drops an attempt that has no wallet. */
export type AutoTopupSendCommand =
  | { readonly type: 'topup'; readonly attempt: number; readonly topupId: string; readonly amount: PicoUsd }
  | { readonly type: 'drop'; readonly attempt: number };

/** Requests the payment of an invoice from the wallet. */
export interface WalletPaymentEffect {
  readonly attempt: number;
  readonly request: number;
  readonly topupId: string;
  readonly invoice: string;
}

export type AutoTopupStep =
  | QueryStep<AutoTopupQuery>
  | SendStep<AutoTopupSendCommand>
  | EffectStep<WalletPaymentEffect>;

function plan(state: AutoTopupState, now: Instant): WorkflowPlan<AutoTopupStep> {
  const { attempt, wallet, attempts } = state;
  if (attempt) return planAttempt(attempt, state, now);
  if (!wallet) return { steps: [] };
  const until = getBlockedUntil(state, now);
  if (until) return { steps: [], dueAt: until };
  const query = { type: 'balance', attempt: attempts + 1, threshold: money.parseJsonAmount(wallet.threshold) } as const;
  return { steps: [{ step: 'query', query }], dueAt: addMilliseconds(now, IDLE_POLL_INTERVAL_MS) };
}

function planAttempt(attempt: OpenAttempt, state: AutoTopupState, now: Instant): WorkflowPlan<AutoTopupStep> {
  const { number, topupId, amount, invoice, requests } = attempt;
  const dueAt = addMilliseconds(now, POLL_INTERVAL_MS);
  if (!state.wallet && attempt.payer === undefined && !attempt.pendingRequest) {
    return { steps: [{ step: 'send', command: { type: 'drop', attempt: number } }], dueAt };
  }
  if (!invoice)
    return { steps: [{ step: 'send', command: { type: 'topup', attempt: number, topupId, amount } }], dueAt };
  const hasExpired = now >= addMilliseconds(invoice.expiresAt, EXPIRY_MARGIN_MS);
  const pollStep: AutoTopupStep = { step: 'query', query: { type: 'invoice', attempt: number, topupId, hasExpired } };
  if (!canRequestPayment(state, now)) return { steps: [pollStep], dueAt };
  const request = requests + 1;
  const effect = { attempt: number, request, topupId, invoice: invoice.bolt11 };
  return { steps: [pollStep, { step: 'effect', key: toEffectKey(effect), effect }], dueAt };
}

function toEffectKey({ attempt, request }: Pick<WalletPaymentEffect, 'attempt' | 'request'>): string {
  return `${attempt}/${request}`;
}

function parseEffectKey(key: string): { readonly attempt: number; readonly request: number } {
  const [attempt = 0, request = 0] = key.split('/').map(Number);
  return { attempt, request };
}

const AFFECTING_TYPES: ReadonlySet<string> = new Set<AccountEvent['type']>([
  'HoldSettled',
  'CreditReversed',
  'CreditAdded',
  'BalanceAdjusted',
]);

/**
 * Returns the account of an event that can reduce a balance or end an attempt. A hold does neither, because the
 * threshold applies to available and held money together.
 */
function findAffectedId(event: StoredEvent): string | undefined {
  if (!AFFECTING_TYPES.has(event.type)) return undefined;
  return event.stream.startsWith(`${ACCOUNT}-`) ? getStreamId(event) : undefined;
}

export const autoTopupWorkflow: Workflow<AutoTopupCommand, AutoTopupState, AutoTopupEvent, AutoTopupStep> = {
  name: 'autotopups',
  category: AUTO_TOPUP,
  decider: autoTopupDecider,
  plan,
  findAffectedId,
  effects: {
    maxDetached: MAX_CONCURRENT_REQUESTS,
    findStarted({ attempt }) {
      if (!attempt?.pendingRequest) return undefined;
      return {
        key: toEffectKey({ attempt: attempt.number, request: attempt.requests }),
        token: attempt.pendingRequest.token,
      };
    },
    createStartCommand: ({ effect: { attempt, request } }, token, at) => ({
      type: 'BeginRequest',
      data: { attempt, request, token, at },
    }),
    createEndCommand: (key, outcome, at) => ({ type: 'EndRequest', data: { ...parseEffectKey(key), outcome, at } }),
  },
};
