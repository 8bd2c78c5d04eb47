/** Reads from the events of a payer what became of a hold. */
import type { HoldEvent } from '#domain';
import type { EventReader, StoredEvent } from '#kernel';
import type { IdempotencyClaim } from './idempotency-store.ts';

type HoldState = 'open' | 'charged' | 'unpaid';

/** State of a hold after an event. A hold that ended unpaid stays unpaid, even if its charge arrives later. */
const HOLD_STATES: Partial<Record<HoldEvent['type'], HoldState>> = {
  FundsHeld: 'open',
  HoldSettled: 'charged',
  HoldReleased: 'unpaid',
  HoldExpired: 'unpaid',
  ChargeReversed: 'unpaid',
};

interface HoldStatus {
  /** Undefined if the hold was never placed. */
  readonly state: HoldState | undefined;
  /** Time of the event that caused this state; empty if there is none. */
  readonly at: string;
}

/** Loads the state of a claim's hold from the events that the payer's stream has after the claim. */
export async function loadHoldStatus(
  { payer, requestId, revision }: IdempotencyClaim,
  events: EventReader,
): Promise<HoldStatus> {
  let hold: HoldStatus = { state: undefined, at: '' };
  for await (const batch of events.read(payer, revision)) {
    for (const { type, data } of batch as readonly StoredEvent<HoldEvent>[]) {
      if (!('holdId' in data) || data.holdId !== requestId) continue;
      const state = HOLD_STATES[type];
      if (state) hold = { state, at: data.at };
    }
  }
  return hold;
}
