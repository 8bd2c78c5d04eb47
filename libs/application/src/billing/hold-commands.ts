/** Holds are in the stream of their payer: an account, or a challenge that was paid for one request. */
import { ACCOUNT, CHALLENGE, getStreamId, type HoldCommand, type HoldEvent, type Holds } from '#domain';
import type { Cause } from '#kernel';
import type { Clock } from '../clock.ts';
import type { Streams } from '../streams.ts';

/** So much later than it says a hold is ended: who counts on it may be late with its charge, which would then be nobody's. */
export const EXPIRY_MARGIN_MS = 30_000;

/** Ends holds whose time is surely over: none by a clock that may be wrong. */
export function createExpireHoldsCommand(clock: Clock): HoldCommand {
  const before = clock.isReliable() ? clock.fromNow(-EXPIRY_MARGIN_MS) : clock.toInstant(0);
  return { type: 'ExpireHolds', data: { before, at: clock.now() } };
}

/** Sends commands about holds to the stream of their payer, of either kind. */
export class HoldCommandRouter {
  constructor(private readonly streams: Pick<Streams, 'accounts' | 'challenges'>) {}

  /** @param payer the name of its stream, as a hold has it. @throws Rejection, StoreUnavailableError */
  run(payer: string, command: HoldCommand, cause: Cause): Promise<HoldCommandResult> {
    const id = getStreamId({ stream: payer });
    const { accounts, challenges } = this.streams;
    if (payer.startsWith(`${ACCOUNT}-`)) return accounts.run(id, command, cause) as Promise<HoldCommandResult>;
    if (payer.startsWith(`${CHALLENGE}-`)) return challenges.run(id, command, cause) as Promise<HoldCommandResult>;
    throw new Error(`${payer} holds no money`);
  }
}

/** Commands about holds are followed by facts about holds, in any stream. */
export interface HoldCommandResult {
  readonly events: readonly HoldEvent[];
  readonly state: Holds;
}
