import type { AnyModel, Endpoint } from '#catalogue';
import { Clock } from '../clock.ts';
import type { FailureCode, UpstreamError } from '../errors.ts';
import type { EndpointPerformance } from './route.ts';

/** Weight of the newest measurement. */
const NEWEST_WEIGHT = 0.2;
const MIN_PAUSE_MS = 2_000;
const MAX_PAUSE_MS = 60_000;
/** Answers shorter than this say nothing about throughput. */
const MIN_MEASURED_TOKENS = 16;

const TYPICAL_TOKENS_PER_SECOND = 60;
/** What comes faster was made before, and says nothing of how fast a model thinks. */
const MAX_TOKENS_PER_SECOND = 300;
/** How long the first byte takes where nothing is thought before it, and nothing is known. */
const TYPICAL_LATENCY_MS = 1_000;

/** What says nothing about an endpoint. */
const IGNORED_FAILURE_CODES: ReadonlySet<FailureCode> = new Set([
  'invalid_request',
  'content_policy_violation',
  'client_disconnected',
  'shutdown',
  'hold_used_up',
  'hold_ended',
  'not_served',
]);

type Model = Pick<AnyModel, 'id'>;

interface IdleTimeSource {
  /** How long nothing was seen, beyond what the first byte may take. */
  getIdleMs(graceMs: number): number;
}

/** Tokens of output per second. @param tokensPerSecond as measured, or as expected; undefined for an endpoint that nothing is known of */
export function getTypicalSpeed(tokensPerSecond: number | undefined): number {
  return Math.min(tokensPerSecond ?? TYPICAL_TOKENS_PER_SECOND, MAX_TOKENS_PER_SECOND);
}

/** Whether a model may use tokens there that are not seen. */
export function canReason({ parameters }: Pick<Endpoint, 'parameters'>): boolean {
  return parameters.includes('reasoning');
}

interface Measurement {
  latencyMs: number | undefined;
  tokensPerSecond: number | undefined;
  failures: number;
  coolUntil: number;
}

/** How endpoints perform, as seen by this process: what routing sorts by, and which ones it avoids for a while. */
export class EndpointHealth {
  private readonly measurements = new Map<string, Measurement>();

  constructor(private readonly clock: Clock) {}

  get(model: Model, endpoint: Endpoint): EndpointPerformance {
    const measurement = this.measurements.get(toKey(model, endpoint));
    const coolingDown = (measurement?.coolUntil ?? 0) > this.clock.nowMs();
    return {
      latencyMs: measurement?.latencyMs,
      tokensPerSecond: measurement?.tokensPerSecond,
      isCoolingDown: coolingDown,
    };
  }

  /** Tokens that may have been thought for an answer of which nothing was seen for a while. */
  estimateReasoningTokens({ getIdleMs }: IdleTimeSource, model: Model, endpoint: Endpoint): number {
    if (!canReason(endpoint)) return 0;
    const { latencyMs = TYPICAL_LATENCY_MS, tokensPerSecond } = endpoint;
    const perSecond = getTypicalSpeed(this.get(model, endpoint).tokensPerSecond ?? tokensPerSecond);
    return Math.floor((getIdleMs(latencyMs) / 1_000) * perSecond);
  }

  /** The first byte came after `latencyMs`. */
  recordFirstByte(model: Model, endpoint: Endpoint, latencyMs: number): void {
    const measured = this.ensureMeasurement(model, endpoint);
    measured.failures = 0;
    measured.coolUntil = 0;
    measured.latencyMs = average(measured.latencyMs, latencyMs);
  }

  /** An answer of `tokens` took `milliseconds` from its first byte on. */
  recordDelivery(model: Model, endpoint: Endpoint, tokens: number, milliseconds: number): void {
    if (tokens < MIN_MEASURED_TOKENS || milliseconds <= 0) return;
    const measured = this.ensureMeasurement(model, endpoint);
    measured.tokensPerSecond = average(measured.tokensPerSecond, (tokens * 1_000) / milliseconds);
  }

  /**
   * It is avoided for as long as it asks for, or for longer with each failure. Only what it did itself counts: a caller who can make
   * our own program fail cannot move everybody's requests to a dearer one.
   */
  recordFailure(model: Model, endpoint: Endpoint, { code, retryAfterSeconds, isInternal }: UpstreamError): void {
    if (isInternal || IGNORED_FAILURE_CODES.has(code)) return;
    const measured = this.ensureMeasurement(model, endpoint);
    const pause = Math.min(MIN_PAUSE_MS * 2 ** measured.failures++, MAX_PAUSE_MS);
    const requestedPauseMs = (retryAfterSeconds ?? 0) * 1_000;
    measured.coolUntil = this.clock.nowMs() + Math.max(pause, requestedPauseMs);
  }

  private ensureMeasurement(model: Model, endpoint: Endpoint): Measurement {
    const key = toKey(model, endpoint);
    const measurement = this.measurements.get(key) ?? {
      latencyMs: undefined,
      tokensPerSecond: undefined,
      failures: 0,
      coolUntil: 0,
    };
    this.measurements.set(key, measurement);
    return measurement;
  }
}

function toKey({ id }: Model, { slug }: Endpoint): string {
  return `${slug} ${id}`;
}

function average(previous: number | undefined, newest: number): number {
  return previous === undefined ? newest : previous + NEWEST_WEIGHT * (newest - previous);
}
