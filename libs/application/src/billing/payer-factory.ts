import type { Holds } from '#domain';
import type { Cause, PicoUsd } from '#kernel';
import type { Clock } from '../clock.ts';
import type { Streams } from '../streams.ts';
import { AccountPayer } from './account-payer.ts';
import { ChallengePayer, type ProvenChallenge } from './challenge-payer.ts';
import { expireHoldsBy, HeldFunds } from './hold-commands.ts';
import type { Caller, Payer } from './payer.ts';
import type { Holding, HoldOwner } from './stream-payer.ts';

/** Finds the payer of a request. */
export class Payers {
  private readonly holding: Holding;

  /** @param bearable what the house bears for an account in an hour; any amount where it is left out */
  constructor(
    private readonly streams: Pick<Streams, 'accounts' | 'challenges'>,
    clock: Clock,
    owner: HoldOwner,
    bearable?: PicoUsd,
  ) {
    this.holding = { funds: new HeldFunds(streams), clock, owner, bearable };
  }

  of(caller: Caller): Payer {
    return new AccountPayer(this.holding, this.streams.accounts, caller);
  }

  /** @param again its answer was lost with the gateway that died: the house pays */
  ofChallenge(proven: ProvenChallenge, again = false): Payer {
    return new ChallengePayer(this.holding, this.streams.challenges, proven, again);
  }

  /**
   * Ends the holds of a payer that have expired, so that its facts say what became of them. Returns its holds.
   * @param payer the name of its stream
   */
  async endOverdueHolds(payer: string, cause: Cause): Promise<Holds> {
    const { funds, clock } = this.holding;
    return (await funds.run(payer, expireHoldsBy(clock), cause)).state;
  }
}
