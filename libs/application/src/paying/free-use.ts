/** Free models are bounded by how often an account may ask them, since no price bounds them. */
import type { Clock } from '../clock.ts';
import { UpstreamFailure } from '../failures.ts';
import { type Hold, type HoldRequest, type Payer, PayerBefore } from './payer.ts';

/** Requests of one account to free models. */
export interface FreeLimits {
  readonly freePerMinute: number;
  readonly freePerDay: number;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** Accounts that are counted before those are forgotten whose day has passed. */
const FORGET_ABOVE = 10_000;

/** A span of time that began with a request, and how many have come since. */
interface Span {
  since: number;
  requests: number;
}

/**
 * Counts per account, by the minute and by the day. Each gateway counts for itself: what is free is not worth an append, and
 * a limit that is a few times as high with a few gateways still is one.
 */
export class FreeUse {
  private readonly counted = new Map<string, { readonly minute: Span; readonly day: Span }>();

  constructor(
    private readonly clock: Clock,
    private readonly limits: FreeLimits,
  ) {}

  /** The same payer, within the limits where what it pays for costs nothing. */
  payerOf(payer: Payer): Payer {
    return new LimitedPayer(payer, (id) => this.count(id));
  }

  /** @throws UpstreamFailure when it is one too many, which then is not counted */
  private count(payer: string): void {
    const now = this.clock.milliseconds();
    if (this.counted.size > FORGET_ABOVE) this.forget(now);
    const { minute, day } = this.counted.get(payer) ?? { minute: begun(now), day: begun(now) };
    const spans = [
      [minute, MINUTE_MS, this.limits.freePerMinute],
      [day, DAY_MS, this.limits.freePerDay],
    ] as const;
    for (const [span, lengthMs, limit] of spans) {
      if (now - span.since >= lengthMs) Object.assign(span, begun(now));
      if (span.requests >= limit) throw tooMany(this.limits, span.since + lengthMs - now);
    }
    for (const [span] of spans) span.requests++;
    this.counted.set(payer, { minute, day });
  }

  private forget(now: number): void {
    for (const [payer, { day }] of this.counted) if (now - day.since >= DAY_MS) this.counted.delete(payer);
  }
}

class LimitedPayer extends PayerBefore {
  constructor(
    payer: Payer,
    private readonly count: (payer: string) => void,
  ) {
    super(payer);
  }

  override async take(request: HoldRequest): Promise<Hold> {
    if (request.query.free) this.count(this.payer.id);
    return this.payer.take(request);
  }
}

function begun(now: number): Span {
  return { since: now, requests: 0 };
}

function tooMany({ freePerMinute, freePerDay }: FreeLimits, waitMs: number): UpstreamFailure {
  const message = `Free models take ${freePerMinute} requests a minute and ${freePerDay} a day of one account; models that are paid for have no such limit`;
  return new UpstreamFailure('rate_limited', message, { retryAfterSeconds: Math.ceil(waitMs / 1_000) });
}
