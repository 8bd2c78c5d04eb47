import { type Hold, Holds, type HoldWish } from '#application';
import type { Charge } from '#domain';
import { Rejection } from '#kernel';

/** What this process knows of the money of a request. `open` also means: it could not learn how it ended. */
export type Standing = 'none' | 'open' | 'charged' | 'released';

/** Holds, of which some requests' are watched: so no use case has to tell whether it charged. */
export class WatchedHolds extends Holds {
  private readonly standings = new Map<string, Standing>();

  watch(requestId: string): void {
    this.standings.set(requestId, 'none');
  }

  /** How it stands now; it is not watched any more. */
  outcome(requestId: string): Standing {
    const standing = this.standings.get(requestId) ?? 'open';
    this.standings.delete(requestId);
    return standing;
  }

  override async take(wish: HoldWish): Promise<Hold> {
    this.note(wish.requestId, 'open');
    try {
      return await super.take(wish);
    } catch (error) {
      if (error instanceof Rejection && !TAKEN.has(error.code)) this.note(wish.requestId, 'none');
      throw error;
    }
  }

  override async settle(hold: Hold, charge: Charge) {
    const charged = await super.settle(hold, charge);
    this.note(hold.holdId, 'charged');
    return charged;
  }

  override async release(hold: Hold, ...why: WhyReleased): Promise<void> {
    await super.release(hold, ...why);
    this.note(hold.holdId, 'released');
  }

  private note(requestId: string, standing: Standing): void {
    if (this.standings.has(requestId)) this.standings.set(requestId, standing);
  }
}

type WhyReleased = Parameters<Holds['release']> extends [Hold, ...infer Rest] ? Rest : never;

/** Refusals that tell of another hold with the same id, whose fate is not known here. */
const TAKEN: ReadonlySet<string> = new Set(['hold_conflict', 'hold_resolved']);
