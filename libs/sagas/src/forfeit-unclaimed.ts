import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Challenges, Clock } from '#application';
import { createRootCause, money, type PicoUsd, ZERO_USD } from '#kernel';

const SWEEP_INTERVAL_MS = 3_600_000;
/** After a sweep that failed. */
const RETRY_DELAY_MS = 60_000;
const DAY_MS = 86_400_000;

/** What the ports find are hints: the challenge's stream decides. */
export interface ForfeitDependencies {
  readonly challenges: Challenges;
  readonly clock: Clock;
  /** How long after a challenge can no longer be used what is left of it becomes income. */
  readonly unclaimedAfterDays: number;
  /** Challenges of which something seems to be left, and that could be used until before then; some of them at a time. */
  findUnclaimed(before: string): Promise<readonly string[]>;
  /** Says in the log what became income: it never does so silently. */
  onForfeit(forfeited: { readonly challenges: number; readonly amount: PicoUsd }): void;
  reportError(problem: string, error: unknown): void;
}

/** Books as income what was paid for challenges and can no longer be used, by the operator's rule. */
export async function forfeitUnclaimedPayments(dependencies: ForfeitDependencies, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const done = await sweep(dependencies, signal).catch((error) => {
      dependencies.reportError('payments that nobody has claimed could not be found; trying again', error);
      return false;
    });
    await delay(done ? SWEEP_INTERVAL_MS : RETRY_DELAY_MS, undefined, { signal }).catch(() => {});
  }
}

/** @returns whether nothing is left to be done */
async function sweep(dependencies: ForfeitDependencies, signal: AbortSignal): Promise<boolean> {
  const before = dependencies.clock.toInstant(dependencies.clock.nowMs() - dependencies.unclaimedAfterDays * DAY_MS);
  const challengeIds = await dependencies.findUnclaimed(before);
  let [challenges, amount, failed] = [0, ZERO_USD, false];
  for (const id of challengeIds) {
    if (signal.aborted) break;
    const forfeited = await forfeit(id, before, dependencies);
    failed ||= forfeited === undefined;
    if (forfeited) [challenges, amount] = [challenges + 1, money.add(amount, forfeited)];
  }
  if (challenges > 0) dependencies.onForfeit({ challenges, amount });
  return challengeIds.length === 0 || (!failed && challenges === 0);
}

/** @returns what became income, 0 where the stream says that there is nothing; undefined where it could not be done */
async function forfeit(
  id: string,
  usableBefore: string,
  { challenges, clock, reportError }: ForfeitDependencies,
): Promise<PicoUsd | undefined> {
  try {
    const command = { type: 'ForfeitChallenge', data: { usableBefore, at: clock.now() } } as const;
    const { events } = await challenges.run(id, command, createRootCause('saga:unclaimed', randomUUID()));
    const forfeited = events.find(({ type }) => type === 'ChallengeForfeited');
    return forfeited?.type === 'ChallengeForfeited' ? money.parseJsonAmount(forfeited.data.amount) : ZERO_USD;
  } catch (error) {
    reportError(`what is left of challenge ${id} could not be booked as income; trying again`, error);
    return undefined;
  }
}
