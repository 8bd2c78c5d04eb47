/**
 * Commands about holds. A hold is on the stream of its payer: an account, or a challenge that was paid for one request.
 */
import { ACCOUNT, CHALLENGE, getStreamId, type HoldCommand, type HoldEvent, type Holds } from '#domain';
import type { Cause } from '#kernel';
import type { Clock } from '../clock.ts';
import type { Streams } from '../streams.ts';

/**
 * An expired hold is ended at least this long after its expiry, because its charge may be late. The operator absorbs a
 * charge that arrives after the hold has ended.
 */
export const EXPIRY_MARGIN_MS = 30_000;

/**
 * A hold that the store confirms later than this after it was requested is not used. A process may have been suspended
 * in the meantime, and seem dead. All its holds that were requested longer ago are ended then, whenever they were stored.
 */
export const MAX_PLACEMENT_MS = 5_000;

/**
 * Returns a command that ends the holds that expired at least `EXPIRY_MARGIN_MS` ago. It ends no hold while the clock
 * is not reliable.
 */
export function createExpireHoldsCommand(clock: Clock): HoldCommand {
  const before = clock.isReliable() ? clock.fromNow(-EXPIRY_MARGIN_MS) : clock.toInstant(0);
  return { type: 'ExpireHolds', data: { before, at: clock.now() } };
}

/** Sends commands about holds to the stream of their payer. */
export class HoldCommandRouter {
  constructor(private readonly streams: Pick<Streams, 'accounts' | 'challenges'>) {}

  /**
   * @param payer name of the payer's stream, as in `Hold.payer`
   * @throws any error of `CommandRunner.run`; Error if the stream is not that of a payer
   */
  run(payer: string, command: HoldCommand, cause: Cause): Promise<HoldCommandResult> {
    const id = getStreamId({ stream: payer });
    const { accounts, challenges } = this.streams;
    if (payer.startsWith(`${ACCOUNT}-`)) return accounts.run(id, command, cause) as Promise<HoldCommandResult>;
    if (payer.startsWith(`${CHALLENGE}-`)) return challenges.run(id, command, cause) as Promise<HoldCommandResult>;
    throw new Error(`${payer} is not the stream of a payer`);
  }
}

/** The part of a command's outcome that accounts and challenges have in common. */
export interface HoldCommandResult {
  readonly events: readonly HoldEvent[];
  readonly state: Holds;
}
