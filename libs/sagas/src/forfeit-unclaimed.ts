import { CHALLENGE_USABLE_MS, type Challenges, type Clock } from '#application';
import { createRootCause, money, type PicoUsd, type Runtime, ZERO_USD } from '#kernel';

const SWEEP_INTERVAL_MS = 3_600_000;
/** Delay after a sweep that failed or that forfeited something. */
const RETRY_DELAY_MS = 60_000;
const DAY_MS = 86_400_000;

/** The challenges that `findUnclaimed` returns are hints from a read model: the stream of the challenge decides. */
export interface ForfeitDependencies {
  readonly challenges: Challenges;
  readonly clock: Clock;
  /**
   * The remaining amount of a challenge is forfeited this many days after the challenge became unusable, and at the
   * earliest this many days and `CHALLENGE_USABLE_MS` after it was paid.
   */
  readonly unclaimedAfterDays: number;
  /** Returns some of the challenges that have a remaining amount and were paid before this instant, oldest first. */
  findUnclaimed(before: string): Promise<readonly string[]>;
  /** Called after each sweep that turned payments into income, so that the log shows it. */
  onForfeit(forfeited: { readonly challenges: number; readonly amount: PicoUsd }): void;
  readonly runtime: Runtime;
}

/**
 * Forfeits the remaining amounts of challenges that have been unusable for `unclaimedAfterDays`: they become income of
 * the operator. Runs until `signal` is aborted.
 */
export async function forfeitUnclaimedPayments(dependencies: ForfeitDependencies, signal: AbortSignal): Promise<void> {
  const { runtime } = dependencies;
  while (!signal.aborted) {
    const done = await sweep(dependencies, signal).catch((error) => {
      runtime.reportError('unclaimed payments could not be found; retrying', error);
      return false;
    });
    await runtime.sleep(done ? SWEEP_INTERVAL_MS : RETRY_DELAY_MS, { signal });
  }
}

/** @returns whether nothing was forfeited and nothing failed: then the next sweep can wait for the full interval */
async function sweep(dependencies: ForfeitDependencies, signal: AbortSignal): Promise<boolean> {
  const { clock, unclaimedAfterDays } = dependencies;
  const usableBeforeMs = clock.nowMs() - unclaimedAfterDays * DAY_MS;
  const usableBefore = clock.toInstant(usableBeforeMs);
  // Only challenges that are due: others among the oldest would be found by each sweep, instead of those that are.
  const challengeIds = await dependencies.findUnclaimed(clock.toInstant(usableBeforeMs - CHALLENGE_USABLE_MS));
  let [challenges, amount, failed] = [0, ZERO_USD, false];
  for (const id of challengeIds) {
    if (signal.aborted) break;
    const forfeited = await forfeit(id, usableBefore, dependencies);
    failed ||= forfeited === undefined;
    if (forfeited) [challenges, amount] = [challenges + 1, money.add(amount, forfeited)];
  }
  if (challenges > 0) dependencies.onForfeit({ challenges, amount });
  return challengeIds.length === 0 || (!failed && challenges === 0);
}

/** @returns the forfeited amount, 0 if the challenge has nothing to forfeit; undefined if the command failed */
async function forfeit(
  id: string,
  usableBefore: string,
  { challenges, clock, runtime }: ForfeitDependencies,
): Promise<PicoUsd | undefined> {
  try {
    const command = { type: 'ForfeitChallenge', data: { usableBefore, at: clock.now() } } as const;
    const { events } = await challenges.run(id, command, createRootCause('saga:unclaimed', runtime.generateId()));
    const forfeited = events.find(({ type }) => type === 'ChallengeForfeited');
    return forfeited?.type === 'ChallengeForfeited' ? money.parseJsonAmount(forfeited.data.amount) : ZERO_USD;
  } catch (error) {
    runtime.reportError(`the unclaimed amount of challenge ${id} could not be forfeited; retrying`, error);
    return undefined;
  }
}
