import type { Holds } from '#domain';
import type { Cause } from '#kernel';
import type { Streams } from '../streams.ts';
import { AccountPayer } from './account-payer.ts';
import { ChallengePayer, type PaidChallenge } from './challenge-payer.ts';
import { createExpireHoldsCommand, HoldCommandRouter } from './hold-commands.ts';
import { HoldQueue, type WaitLimits } from './hold-queue.ts';
import type { Caller, Payer } from './payer.ts';
import { PaymentRegistry } from './payment-registry.ts';
import { PendingWrites } from './pending-writes.ts';
import type { PayerDependencies } from './stream-payer.ts';

const NO_WAIT: WaitLimits = { maxWaiting: 0, maxWaitMs: 0 };

export class PayerFactory {
  private readonly dependencies: PayerDependencies;
  private readonly registry: PaymentRegistry;
  private readonly queue: HoldQueue;
  /** A process must not stop before these are done. */
  readonly pendingWrites = new PendingWrites();

  constructor(
    private readonly streams: Pick<Streams, 'accounts' | 'challenges' | 'paymentClaims'>,
    dependencies: Omit<PayerDependencies, 'holdCommands' | 'pendingWrites'>,
    waitLimits: WaitLimits = NO_WAIT,
  ) {
    this.queue = new HoldQueue(waitLimits, dependencies.runtime);
    this.registry = new PaymentRegistry(streams.paymentClaims, dependencies.clock);
    const { pendingWrites } = this;
    this.dependencies = { holdCommands: new HoldCommandRouter(streams), pendingWrites, ...dependencies };
  }

  forCaller(caller: Caller): Payer {
    return new AccountPayer(this.dependencies, { accounts: this.streams.accounts, queue: this.queue }, caller);
  }

  /**
   * @param isRetry the response was lost; the operator absorbs the cost of serving the request again
   */
  forChallenge(challenge: PaidChallenge, isRetry = false): Payer {
    return new ChallengePayer(
      this.dependencies,
      { challenges: this.streams.challenges, registry: this.registry },
      challenge,
      isRetry,
    );
  }

  /**
   * Ends the overdue holds of a payer, see `createExpireHoldsCommand`. The payer's events then show how each of them
   * ended. Returns the state of all holds of the payer.
   * @param payer name of the payer's stream
   */
  async endOverdueHolds(payer: string, cause: Cause): Promise<Holds> {
    const { holdCommands, clock } = this.dependencies;
    return (await holdCommands.run(payer, createExpireHoldsCommand(clock), cause)).state;
  }
}
