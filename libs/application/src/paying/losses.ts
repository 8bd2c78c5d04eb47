/**
 * What the house bears: calls that vendors invoice and nobody is charged for, and what an answer cost beyond its hold. However it
 * comes about, one payer causes only so much of it in an hour.
 */
import { LRUCache } from 'lru-cache';
import { formatUsd, money, type PicoUsd, ZERO } from '#kernel';
import type { Clock } from '../clock.ts';
import { UpstreamFailure } from '../failures.ts';

const HOUR_MS = 60 * 60_000;
/** So much of what a payer was charged may be lost on top, one part of so many: what is sold earns about as much. */
const EARNED_PART = 20n;
/** Payers that losses are remembered of, in each gateway. */
const MOST_REMEMBERED = 100_000;

/** What was lost on a payer since an hour of its began, and what it was charged meanwhile. */
interface Hour {
  readonly since: number;
  readonly borne: PicoUsd;
  readonly charged: PicoUsd;
}

/** Each gateway counts for itself: a limit that is a few times as high with a few gateways still is one. */
export class Losses {
  private readonly hours = new LRUCache<string, Hour>({ max: MOST_REMEMBERED });

  /** @param perHour what may be lost on one payer in an hour, beside the part of what it was charged */
  constructor(
    private readonly clock: Clock,
    private readonly perHour: PicoUsd,
    private readonly alarm: (problem: string, error: unknown) => void,
  ) {}

  /** @throws UpstreamFailure `rate_limited` when more was lost on this payer than may be */
  assertBearable(payer: string): void {
    const hour = this.hours.size === 0 ? undefined : this.hourOf(payer);
    if (hour === undefined || !this.isTooMuch(hour)) return;
    const retryAfterSeconds = Math.ceil((hour.since + HOUR_MS - this.clock.milliseconds()) / 1_000);
    const message =
      'Requests of this account that came to nothing have cost too much within an hour, and no more are taken';
    throw new UpstreamFailure('rate_limited', message, { retryAfterSeconds });
  }

  /** Counts what a request has cost the house, and what was paid for it. */
  count(payer: string, borne: PicoUsd, charged: PicoUsd): void {
    if (borne === ZERO && this.hours.size === 0) return;
    const earlier = this.hourOf(payer);
    if (borne === ZERO && earlier === undefined) return;
    const { since, ...sums } = earlier ?? { since: this.clock.milliseconds(), borne: ZERO, charged: ZERO };
    const hour = { since, borne: money.add(sums.borne, borne), charged: money.add(sums.charged, charged) };
    this.hours.set(payer, hour);
    if (this.isTooMuch(hour) && !(earlier && this.isTooMuch(earlier)))
      this.alarm(`${payer} is refused for an hour: ${formatUsd(hour.borne)} USD were borne for it`, undefined);
  }

  private isTooMuch({ borne, charged }: Hour): boolean {
    return borne > this.perHour + charged / EARNED_PART;
  }

  private hourOf(payer: string): Hour | undefined {
    const hour = this.hours.get(payer);
    return hour && this.clock.milliseconds() - hour.since < HOUR_MS ? hour : undefined;
  }
}
