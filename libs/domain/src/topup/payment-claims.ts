/**
 * Which top-up or challenge a payment belongs to. Payment backends identify payments, and a faulty, restored or forged
 * one can report the same payment for two invoices. So each payment has a stream of its own, in which the first
 * claimant wins. Nothing is credited for a payment that is not claimed.
 */
import { OrderedMap } from 'immutable';
import { type Decider, throwUnknownEvent } from '#kernel';
import { reject } from '../rejections.ts';
import type { Instant } from '../value-types.ts';
import type { PaymentClaimEvent, PaymentId } from './events.ts';

/** Further claimants of the same payment are still rejected, but not recorded. */
const MAX_CONTESTS = 100;

export interface PaymentClaimState {
  /** Name of the stream of the top-up or challenge to which the payment belongs. */
  readonly owner: string | undefined;
  /** Whether a person has closed the contest, by the name of the other claimant's stream. */
  readonly contests: OrderedMap<string, boolean>;
}

export type PaymentClaimCommand =
  | {
      readonly type: 'ClaimPayment';
      readonly data: { readonly payment: PaymentId; readonly claimant: string; readonly at: Instant };
    }
  /** Records that a person has dealt with the contests of a payment. */
  | { readonly type: 'CloseContests'; readonly data: { readonly why: string; readonly at: Instant } };

function evolve(state: PaymentClaimState, event: PaymentClaimEvent): PaymentClaimState {
  switch (event.type) {
    case 'PaymentClaimed':
      return { ...state, owner: event.data.claimant };
    case 'PaymentContested':
      return { ...state, contests: state.contests.set(event.data.claimant, false) };
    case 'ContestClosed':
      return { ...state, contests: state.contests.set(event.data.claimant, true) };
    default:
      return throwUnknownEvent(event);
  }
}

function decide(command: PaymentClaimCommand, { owner, contests }: PaymentClaimState): readonly PaymentClaimEvent[] {
  switch (command.type) {
    case 'ClaimPayment': {
      const { claimant } = command.data;
      if (owner === undefined) return [{ type: 'PaymentClaimed', data: command.data }];
      if (owner === claimant || contests.has(claimant) || contests.size >= MAX_CONTESTS) return [];
      return [{ type: 'PaymentContested', data: { ...command.data, owner } }];
    }
    case 'CloseContests': {
      if (contests.size === 0) reject('payment_conflict', 'Nothing contests this payment');
      const open = [...contests.entries()].filter(([, isClosed]) => !isClosed);
      return open.map(([claimant]) => ({ type: 'ContestClosed', data: { claimant, ...command.data } }));
    }
    default:
      return command satisfies never;
  }
}

export const paymentClaimDecider: Decider<PaymentClaimCommand, PaymentClaimState, PaymentClaimEvent> = {
  getInitialState: () => ({ owner: undefined, contests: OrderedMap() }),
  evolve,
  decide,
};
