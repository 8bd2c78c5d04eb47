import type { Holds } from '#domain';
import type { Cause, PicoUsd } from '#kernel';
import type { Clock } from '../clock.ts';
import type { Streams } from '../streams.ts';
import { AccountPayer } from './account-payer.ts';
import { ChallengePayer, type PaidChallenge } from './challenge-payer.ts';
import { createExpireHoldsCommand, HoldCommandRouter } from './hold-commands.ts';
import type { Caller, Payer } from './payer.ts';
import type { GetProcessId, PayerDependencies } from './stream-payer.ts';

export class PayerFactory {
  private readonly dependencies: PayerDependencies;

  /**
   * @param lossLimit cost that the operator absorbs per account and hour, plus a share of what the account was charged;
   *   unlimited if undefined
   */
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

  /**
   * @param isRetry the response was lost when its gateway died; the operator absorbs the cost of serving the request
   *   again
   */
  forChallenge(challenge: PaidChallenge, isRetry = false): Payer {
    return new ChallengePayer(this.dependencies, this.streams.challenges, challenge, isRetry);
  }

  /**
   * Ends the holds of a payer that are overdue, see `createExpireHoldsCommand`. The events of the payer then show how
   * each of these holds ended. Returns the payer's holds.
   * @param payer name of the payer's stream
   */
  async endOverdueHolds(payer: string, cause: Cause): Promise<Holds> {
    const { holdCommands, clock } = this.dependencies;
    return (await holdCommands.run(payer, createExpireHoldsCommand(clock), cause)).state;
  }
}
