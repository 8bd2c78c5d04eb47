import type { Holds } from '#domain';
import type { Cause, PicoUsd } from '#kernel';
import type { Clock } from '../clock.ts';
import type { Streams } from '../streams.ts';
import { AccountPayer } from './account-payer.ts';
import { ChallengePayer, type PaidChallenge } from './challenge-payer.ts';
import { createExpireHoldsCommand, HoldCommandRouter } from './hold-commands.ts';
import type { Caller, Payer } from './payer.ts';
import type { GetProcessId, PayerDependencies } from './stream-payer.ts';

/** Finds the payer of a request. */
export class PayerFactory {
  private readonly holding: PayerDependencies;

  /** @param bearable what the house bears for an account in an hour; any amount where it is left out */
  constructor(
    private readonly streams: Pick<Streams, 'accounts' | 'challenges'>,
    clock: Clock,
    owner: GetProcessId,
    bearable?: PicoUsd,
  ) {
    this.holding = { funds: new HoldCommandRouter(streams), clock, owner, bearable };
  }

  of(caller: Caller): Payer {
    return new AccountPayer(this.holding, this.streams.accounts, caller);
  }

  /** @param again its answer was lost with the gateway that died: the house pays */
  ofChallenge(proven: PaidChallenge, again = false): Payer {
    return new ChallengePayer(this.holding, this.streams.challenges, proven, again);
  }

  /**
   * Ends the holds of a payer that have expired, so that its facts say what became of them. Returns its holds.
   * @param payer the name of its stream
   */
  async endOverdueHolds(payer: string, cause: Cause): Promise<Holds> {
    const { funds, clock } = this.holding;
    return (await funds.run(payer, createExpireHoldsCommand(clock), cause)).state;
  }
}
