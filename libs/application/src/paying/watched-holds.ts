import type { Charge } from '#domain';
import { Rejection } from '#kernel';
import { UpstreamFailure } from '../failures.ts';
import { type Hold, Holds, type HoldWish } from './holds.ts';

/** What this process knows of the money of a request. `open` also means: it could not learn how it ended. */
export type Standing = 'none' | 'open' | 'charged' | 'released';

interface Watched {
  standing: Standing;
  /** What must be known, once there is a hold, before it may be used. @throws Error when it may not */
  readonly confirm: () => Promise<void>;
}

/** Holds, of which some requests' are watched: so no use case has to tell whether it charged. */
export class WatchedHolds extends Holds {
  private readonly watched = new Map<string, Watched>();

  watch(requestId: string, confirm: Watched['confirm']): void {
    this.watched.set(requestId, { standing: 'none', confirm });
  }

  /** How it stands now; it is not watched any more. */
  outcome(requestId: string): Standing {
    const standing = this.watched.get(requestId)?.standing ?? 'open';
    this.watched.delete(requestId);
    return standing;
  }

  override async take(wish: HoldWish): Promise<Hold> {
    const watched = this.watched.get(wish.requestId);
    if (watched === undefined) return super.take(wish);
    watched.standing = 'open';
    const hold = await super.take(wish).catch((error) => {
      if (error instanceof Rejection && !TAKEN.has(error.code)) watched.standing = 'none';
      throw error;
    });
    await watched.confirm().catch(async (error) => {
      await this.release(hold, new UpstreamFailure('not_served', 'It is served elsewhere, or may be'), []);
      throw error;
    });
    return hold;
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
    const watched = this.watched.get(requestId);
    if (watched) watched.standing = standing;
  }
}

type WhyReleased = Parameters<Holds['release']> extends [Hold, ...infer Rest] ? Rest : never;

/** Refusals that tell of another hold with the same id, whose fate is not known here. */
const TAKEN: ReadonlySet<string> = new Set(['hold_conflict', 'hold_resolved']);
