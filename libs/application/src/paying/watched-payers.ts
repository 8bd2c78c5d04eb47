import type { Charge } from '#domain';
import { Rejection } from '#kernel';
import { UpstreamFailure } from '../failures.ts';
import { Payers } from './account-payer.ts';
import type { Caller, Hold, HoldRequest, Payer, Release } from './payer.ts';

/** What this process knows of the money of a request. `open` also means: it could not learn how it ended. */
export type Standing = 'none' | 'open' | 'charged' | 'released';

interface Watched {
  standing: Standing;
  /** What must be known, once there is a hold, before it may be used. @throws Error when it may not */
  readonly confirm: () => Promise<void>;
}

/** Rejections that mean another hold with the same id, whose fate is not known here. */
const TAKEN: ReadonlySet<string> = new Set(['hold_conflict', 'hold_resolved']);

/** Payers of which some requests are watched, so that no use case has to report whether it charged. */
export class WatchedPayers extends Payers {
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

  override of(caller: Caller): Payer {
    return new WatchedPayer(super.of(caller), this.watched);
  }
}

class WatchedPayer implements Payer {
  constructor(
    private readonly payer: Payer,
    private readonly watched: ReadonlyMap<string, Watched>,
  ) {}

  async take(request: HoldRequest): Promise<Hold> {
    const watched = this.watched.get(request.holdId);
    if (watched === undefined) return this.payer.take(request);
    watched.standing = 'open';
    const hold = await this.payer.take(request).catch((error) => {
      if (error instanceof Rejection && !TAKEN.has(error.code)) watched.standing = 'none';
      throw error;
    });
    await watched.confirm().catch(async (error) => {
      const failure = new UpstreamFailure('not_served', 'It is served elsewhere, or may be');
      await this.release(hold, { failure, attempts: [] });
      throw error;
    });
    return hold;
  }

  async settle(hold: Hold, charge: Charge) {
    const charged = await this.payer.settle(hold, charge);
    this.note(hold.holdId, 'charged');
    return charged;
  }

  async release(hold: Hold, why: Release): Promise<void> {
    await this.payer.release(hold, why);
    this.note(hold.holdId, 'released');
  }

  private note(requestId: string, standing: Standing): void {
    const watched = this.watched.get(requestId);
    if (watched) watched.standing = standing;
  }
}
