/** What is to be done for an account's automatic top-up. */
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
import { ACCOUNT, AUTO_TOPUP, getStreamId } from '../events.ts';
import type { Instant } from '../value-types.ts';
import { addMilliseconds } from './backoff.ts';
import { type AutoTopupCommand, autoTopupDecider, canRequestPayment, getBlockedUntil } from './decide.ts';
import type { AutoTopupEvent } from './events.ts';
import type { AutoTopupState, OpenAttempt } from './state.ts';

/** How often the invoice of an open attempt is looked at; its payment is hinted at. */
const LOOK_MS = 2_000;
/** How often a balance is looked at of which no fact has said that it has fallen. */
const LOOK_AT_REST_MS = 3_600_000;
/** How long after its expiry an invoice that was paid in time may show it. */
const EXPIRY_MARGIN_MS = 60_000;

/** Wallets that are being asked, beside what else is at work: their relays may take seconds, and each account may have such. */
const MAX_ASKED = 1_024;

export type AutoTopupQuery =
  /** Is the account below the threshold? Then this attempt begins. */
  | { readonly of: 'balance'; readonly attempt: number; readonly threshold: PicoUsd }
  /** What became of the invoice of an attempt? */
  | {
      readonly of: 'invoice';
      readonly attempt: number;
      readonly topupId: string;
      /** Whether it can not be paid any more: where it is unpaid too, the attempt is over. */
      readonly isOver: boolean;
    };

/** The top-up of an attempt is created, or an attempt without a wallet is dropped. */
export type AutoTopupSendCommand =
  | { readonly of: 'topup'; readonly attempt: number; readonly topupId: string; readonly amount: PicoUsd }
  | { readonly of: 'drop'; readonly attempt: number };

/** The wallet is asked to pay an invoice. */
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

function next(state: AutoTopupState, now: Instant): WorkflowPlan<AutoTopupStep> {
  const { attempt, wallet, attempts } = state;
  if (attempt) return nextOf(attempt, state, now);
  if (!wallet) return { steps: [] };
  const until = getBlockedUntil(state, now);
  if (until) return { steps: [], dueAt: until };
  const question = {
    of: 'balance',
    attempt: attempts + 1,
    threshold: money.parseJsonAmount(wallet.threshold),
  } as const;
  return { steps: [{ step: 'ask', query: question }], dueAt: addMilliseconds(now, LOOK_AT_REST_MS) };
}

function nextOf(attempt: OpenAttempt, state: AutoTopupState, now: Instant): WorkflowPlan<AutoTopupStep> {
  const { number, topupId, amount, invoice, requests } = attempt;
  const dueAt = addMilliseconds(now, LOOK_MS);
  if (!state.wallet && attempt.payer === undefined && !attempt.begun) {
    return { steps: [{ step: 'send', command: { of: 'drop', attempt: number } }], dueAt };
  }
  if (!invoice) return { steps: [{ step: 'send', command: { of: 'topup', attempt: number, topupId, amount } }], dueAt };
  const isOver = now >= addMilliseconds(invoice.expiresAt, EXPIRY_MARGIN_MS);
  const look: AutoTopupStep = { step: 'ask', query: { of: 'invoice', attempt: number, topupId, isOver } };
  if (!canRequestPayment(state, now)) return { steps: [look], dueAt };
  const request = requests + 1;
  const effect = { attempt: number, request, topupId, invoice: invoice.bolt11 };
  return { steps: [look, { step: 'do', key: keyOf(effect), effect }], dueAt };
}

function keyOf({ attempt, request }: Pick<WalletPaymentEffect, 'attempt' | 'request'>): string {
  return `${attempt}/${request}`;
}

function numbersOf(key: string): { readonly attempt: number; readonly request: number } {
  const [attempt = 0, request = 0] = key.split('/').map(Number);
  return { attempt, request };
}

/** What makes a balance fall, or an attempt end. A hold does neither. */
function concerns(fact: StoredEvent): string | undefined {
  if (fact.type !== 'HoldSettled' && fact.type !== 'CreditReversed' && fact.type !== 'CreditAdded') return undefined;
  return fact.stream.startsWith(`${ACCOUNT}-`) ? getStreamId(fact) : undefined;
}

export const autoTopupWorkflow: Workflow<AutoTopupCommand, AutoTopupState, AutoTopupEvent, AutoTopupStep> = {
  name: 'autotopups',
  category: AUTO_TOPUP,
  decider: autoTopupDecider,
  plan: next,
  findAffectedId: concerns,
  effects: {
    maxDetached: MAX_ASKED,
    findStarted({ attempt }) {
      if (!attempt?.begun) return undefined;
      return { key: keyOf({ attempt: attempt.number, request: attempt.requests }), token: attempt.begun.token };
    },
    createStartCommand: ({ effect: { attempt, request } }, token, at) => ({
      type: 'BeginRequest',
      data: { attempt, request, token, at },
    }),
    createEndCommand: (key, outcome, at) => ({ type: 'EndRequest', data: { ...numbersOf(key), outcome, at } }),
  },
};
