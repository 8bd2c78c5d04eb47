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
  private readonly dependencies: PayerDependencies;

  /** @param lossLimit what the house bears for an account in an hour; any amount where it is left out */
  constructor(
    private readonly streams: Pick<Streams, 'accounts' | 'challenges'>,
    clock: Clock,
    getProcessId: GetProcessId,
    lossLimit?: PicoUsd,
  ) {
    this.dependencies = { holdCommands: new HoldCommandRouter(streams), clock, getProcessId, lossLimit };
  }

  forCaller(caller: Caller): Payer {
    return new AccountPayer(this.dependencies, this.streams.accounts, caller);
  }

  /** @param isRetry its answer was lost with the gateway that died: the house pays */
  forChallenge(challenge: PaidChallenge, isRetry = false): Payer {
    return new ChallengePayer(this.dependencies, this.streams.challenges, challenge, isRetry);
  }

  /**
   * Ends the holds of a payer that have expired, so that its facts say what became of them. Returns its holds.
   * @param payer the name of its stream
   */
  async endOverdueHolds(payer: string, cause: Cause): Promise<Holds> {
    const { holdCommands, clock } = this.dependencies;
    return (await holdCommands.run(payer, createExpireHoldsCommand(clock), cause)).state;
  }
}
