import type { AnyModel, Endpoint } from '#catalogue';
import { Clock } from '../clock.ts';
import type { FailureCode, UpstreamError } from '../errors.ts';
import type { EndpointPerformance } from './route.ts';

/** Weight of the newest measurement. */
const NEWEST = 0.2;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 60_000;
/** Answers shorter than this say nothing about throughput. */
const MEASURED_TOKENS = 16;

const USUAL_TOKENS_PER_SECOND = 60;
/** What comes faster was made before, and says nothing of how fast a model thinks. */
const MOST_TOKENS_PER_SECOND = 300;
/** How long the first byte takes where nothing is thought before it, and nothing is known. */
const USUAL_LATENCY_MS = 1_000;

/** What says nothing about an endpoint. */
const NOT_ITS_FAULT: ReadonlySet<FailureCode> = new Set([
  'invalid_request',
  'content_policy_violation',
  'client_disconnected',
  'shutdown',
  'hold_used_up',
  'hold_ended',
  'not_served',
]);

type Model = Pick<AnyModel, 'id'>;

interface Quiet {
  /** How long nothing was seen, beyond what the first byte may take. */
  silentMs(excusedMs: number): number;
}

/** Tokens of output per second. @param known as measured, or as expected; undefined for an endpoint that nothing is known of */
export function getTypicalSpeed(known: number | undefined): number {
  return Math.min(known ?? USUAL_TOKENS_PER_SECOND, MOST_TOKENS_PER_SECOND);
}

/** Whether a model may use tokens there that are not seen. */
export function canReason({ parameters }: Pick<Endpoint, 'parameters'>): boolean {
  return parameters.includes('reasoning');
}

interface Measured {
  latencyMs: number | undefined;
  tokensPerSecond: number | undefined;
  failures: number;
  coolUntil: number;
}

/** How endpoints perform, as seen by this process: what routing sorts by, and which ones it avoids for a while. */
export class EndpointHealth {
  private readonly measured = new Map<string, Measured>();

  constructor(private readonly clock: Clock) {}

  of(model: Model, endpoint: Endpoint): EndpointPerformance {
    const known = this.measured.get(keyOf(model, endpoint));
    const coolingDown = (known?.coolUntil ?? 0) > this.clock.milliseconds();
    return { latencyMs: known?.latencyMs, tokensPerSecond: known?.tokensPerSecond, coolingDown };
  }

  /** Tokens that may have been thought for an answer of which nothing was seen for a while. */
  thoughtIn({ silentMs }: Quiet, model: Model, endpoint: Endpoint): number {
    if (!canReason(endpoint)) return 0;
    const { latencyMs = USUAL_LATENCY_MS, tokensPerSecond } = endpoint;
    const perSecond = getTypicalSpeed(this.of(model, endpoint).tokensPerSecond ?? tokensPerSecond);
    return Math.floor((silentMs(latencyMs) / 1_000) * perSecond);
  }

  /** The first byte came after `latencyMs`. */
  answered(model: Model, endpoint: Endpoint, latencyMs: number): void {
    const measured = this.at(model, endpoint);
    measured.failures = 0;
    measured.coolUntil = 0;
    measured.latencyMs = average(measured.latencyMs, latencyMs);
  }

  /** An answer of `tokens` took `milliseconds` from its first byte on. */
  delivered(model: Model, endpoint: Endpoint, tokens: number, milliseconds: number): void {
    if (tokens < MEASURED_TOKENS || milliseconds <= 0) return;
    const measured = this.at(model, endpoint);
    measured.tokensPerSecond = average(measured.tokensPerSecond, (tokens * 1_000) / milliseconds);
  }

  /**
   * It is avoided for as long as it asks for, or for longer with each failure. Only what it did itself counts: a caller who can make
   * our own program fail cannot move everybody's requests to a dearer one.
   */
  failed(model: Model, endpoint: Endpoint, { code, retryAfterSeconds, isOurs }: UpstreamError): void {
    if (isOurs || NOT_ITS_FAULT.has(code)) return;
    const measured = this.at(model, endpoint);
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** measured.failures++, LONGEST_PAUSE_MS);
    const asked = (retryAfterSeconds ?? 0) * 1_000;
    measured.coolUntil = this.clock.milliseconds() + Math.max(pause, asked);
  }

  private at(model: Model, endpoint: Endpoint): Measured {
    const key = keyOf(model, endpoint);
    const known = this.measured.get(key) ?? {
      latencyMs: undefined,
      tokensPerSecond: undefined,
      failures: 0,
      coolUntil: 0,
    };
    this.measured.set(key, known);
    return known;
  }
}

function keyOf({ id }: Model, { slug }: Endpoint): string {
  return `${slug} ${id}`;
}

function average(known: number | undefined, newest: number): number {
  return known === undefined ? newest : known + NEWEST * (newest - known);
}
