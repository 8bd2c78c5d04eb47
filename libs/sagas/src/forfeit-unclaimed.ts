import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Challenges, Clock } from '#application';
import { createRootCause, money, type PicoUsd, ZERO_USD } from '#kernel';

const SWEEP_EVERY_MS = 3_600_000;
/** After a sweep that failed. */
const TRY_AGAIN_MS = 60_000;
const DAY_MS = 86_400_000;

/** What the ports find are hints: the challenge's stream decides. */
export interface ForfeitDependencies {
  readonly challenges: Challenges;
  readonly clock: Clock;
  /** How long after a challenge can no longer be used what is left of it becomes income. */
  readonly afterDays: number;
  /** Challenges of which something seems to be left, and that could be used until before then; some of them at a time. */
  unclaimed(before: string): Promise<readonly string[]>;
  /** Says in the log what became income: it never does so silently. */
  report(forfeited: { readonly challenges: number; readonly amount: PicoUsd }): void;
  alarm(problem: string, error: unknown): void;
}

/** Books as income what was paid for challenges and can no longer be used, by the operator's rule. */
export async function forfeitUnclaimedPayments(ports: ForfeitDependencies, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const done = await sweep(ports, signal).catch((error) => {
      ports.alarm('payments that nobody has claimed could not be found; trying again', error);
      return false;
    });
    await delay(done ? SWEEP_EVERY_MS : TRY_AGAIN_MS, undefined, { signal }).catch(() => {});
  }
}

/** @returns whether nothing is left to be done */
async function sweep(ports: ForfeitDependencies, signal: AbortSignal): Promise<boolean> {
  const before = ports.clock.toInstant(ports.clock.nowMs() - ports.afterDays * DAY_MS);
  const found = await ports.unclaimed(before);
  let [challenges, amount, failed] = [0, ZERO_USD, false];
  for (const id of found) {
    if (signal.aborted) break;
    const forfeited = await forfeit(id, before, ports);
    failed ||= forfeited === undefined;
    if (forfeited) [challenges, amount] = [challenges + 1, money.add(amount, forfeited)];
  }
  if (challenges > 0) ports.report({ challenges, amount });
  return found.length === 0 || (!failed && challenges === 0);
}

/** @returns what became income, 0 where the stream says that there is nothing; undefined where it could not be done */
async function forfeit(
  id: string,
  usableBefore: string,
  { challenges, clock, alarm }: ForfeitDependencies,
): Promise<PicoUsd | undefined> {
  try {
    const command = { type: 'ForfeitChallenge', data: { usableBefore, at: clock.now() } } as const;
    const { events } = await challenges.run(id, command, createRootCause('saga:unclaimed', randomUUID()));
    const forfeited = events.find(({ type }) => type === 'ChallengeForfeited');
    return forfeited?.type === 'ChallengeForfeited' ? money.parseJsonAmount(forfeited.data.amount) : ZERO_USD;
  } catch (error) {
    alarm(`what is left of challenge ${id} could not be booked as income; trying again`, error);
    return undefined;
  }
}
