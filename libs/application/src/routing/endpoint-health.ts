import type { AnyModel, Endpoint } from '#catalogue';
import { ActionRequiredError, type Runtime } from '#kernel';
import { Clock } from '../clock.ts';
import type { FailureCode, OperatorProblem, UpstreamError } from '../errors.ts';
import { describeProblem, Rest } from '../operator-problems.ts';
import { SampleRegistry } from '../sample-registry.ts';
import type { EndpointPerformance } from './route.ts';

/** Weight of the newest measurement. */
const NEWEST_WEIGHT = 0.2;
const MIN_PAUSE_MS = 2_000;
const MAX_PAUSE_MS = 60_000;
/** Responses with fewer tokens are too short to measure throughput. */
const MIN_MEASURED_TOKENS = 16;
/**
 * Responses with fewer tokens often arrive in one packet, so they do not show the maximum speed. A longer response that
 * arrives at once does: its provider cannot be stopped in time.
 */
export const MIN_SPEED_TOKENS = 128;
/** A response that arrives in less time counts as one that took this long, which is faster than any stream. */
const MIN_MEASURED_MS = 1;
const MAX_SPEED_PERCENTILE = 99;

const TYPICAL_TOKENS_PER_SECOND = 60;
/** Faster output was generated before it was sent, so it does not show how fast the model reasons. */
const MAX_TOKENS_PER_SECOND = 300;
/** Time to the first byte without reasoning, for endpoints whose entry in the catalogue has no latency. */
const TYPICAL_LATENCY_MS = 1_000;

/** Failures that do not count against an endpoint. */
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

export interface IdleTimeSource {
  /** Milliseconds without visible output while the response was read, not counting `graceMs` for the first byte. */
  getIdleMs(graceMs: number): number;
  /** Reasoning tokens that the sent request permits at most; undefined if only its output limit limits them. */
  readonly maxReasoningTokens?: number | undefined;
}

/**
 * Returns the output tokens per second that can be expected.
 * @param tokensPerSecond measured or expected; undefined if nothing is known about the endpoint
 */
export function getTypicalSpeed(tokensPerSecond: number | undefined): number {
  return Math.min(tokensPerSecond ?? TYPICAL_TOKENS_PER_SECOND, MAX_TOKENS_PER_SECOND);
}

/**
 * Returns how many hidden reasoning tokens the model may use at most for a request to this endpoint; infinite if only
 * the output limit limits them.
 */
export function getMaxReasoningTokens(
  { parameters }: Pick<Endpoint, 'parameters'>,
  { maxReasoningTokens = Number.POSITIVE_INFINITY }: Pick<IdleTimeSource, 'maxReasoningTokens'>,
): number {
  return parameters.includes('reasoning') ? maxReasoningTokens : 0;
}

/** Returns the time to the first byte without reasoning, in milliseconds. */
export function getTypicalLatency({ latencyMs = TYPICAL_LATENCY_MS }: Pick<Endpoint, 'latencyMs'>): number {
  return latencyMs;
}

interface Measurement {
  latencyMs: number | undefined;
  tokensPerSecond: number | undefined;
  failures: number;
  coolUntil: number;
  /** Time without requests after a problem of the operator that concerns only this endpoint. */
  readonly rest: Rest;
}

/**
 * The performance of endpoints as observed by this process. Routing can sort by performance, and avoids endpoints that
 * failed recently.
 */
export class EndpointHealth {
  private readonly measurements = new Map<string, Measurement>();

  /**
   * @param samples the output speeds by model and endpoint, which processes share
   * @param reportError gets each problem of the operator that concerns one endpoint, once until it has ended
   */
  constructor(
    private readonly clock: Clock,
    private readonly samples = new SampleRegistry(),
    private readonly reportError: Runtime['reportError'] = () => {},
  ) {}

  get(model: Model, endpoint: Endpoint): EndpointPerformance {
    const measurement = this.measurements.get(toKey(model, endpoint));
    const coolingDown = (measurement?.coolUntil ?? 0) > this.clock.nowMs();
    return {
      latencyMs: measurement?.latencyMs,
      tokensPerSecond: measurement?.tokensPerSecond,
      isCoolingDown: coolingDown,
    };
  }

  /**
   * Returns the output speed of one choice that few responses exceed, in tokens per second.
   * @returns undefined before the first measurement
   */
  getMaxTokensPerSecond(model: Model, endpoint: Endpoint): number | undefined {
    return this.samples.get(toSpeedName(model, endpoint))?.getPercentile(MAX_SPEED_PERCENTILE);
  }

  /** Estimates the reasoning tokens of a response from the time in which no output was visible. */
  estimateReasoningTokens(source: IdleTimeSource, model: Model, endpoint: Endpoint): number {
    const maxTokens = getMaxReasoningTokens(endpoint, source);
    if (maxTokens === 0) return 0;
    const perSecond = getTypicalSpeed(this.get(model, endpoint).tokensPerSecond ?? endpoint.tokensPerSecond);
    return Math.min(Math.floor((source.getIdleMs(getTypicalLatency(endpoint)) / 1_000) * perSecond), maxTokens);
  }

  /**
   * Call before a request. An endpoint rests after a problem of the operator that concerns only this endpoint, such as a
   * model that its provider no longer has.
   * @throws UpstreamError while the endpoint rests
   */
  assertUsable(model: Model, endpoint: Endpoint): void {
    this.measurements.get(toKey(model, endpoint))?.rest.requestAttempt();
  }

  /** Records that the first byte arrived after `latencyMs`. Ends a cool-down and a rest. */
  recordFirstByte(model: Model, endpoint: Endpoint, latencyMs: number): void {
    const measured = this.ensureMeasurement(model, endpoint);
    measured.rest.end();
    measured.failures = 0;
    measured.coolUntil = 0;
    measured.latencyMs = average(measured.latencyMs, latencyMs);
  }

  /** Records that generating `tokens` of one choice took `milliseconds`. */
  recordDelivery(model: Model, endpoint: Endpoint, tokens: number, milliseconds: number): void {
    if (tokens >= MIN_SPEED_TOKENS)
      this.samples.record(toSpeedName(model, endpoint), (tokens * 1_000) / Math.max(milliseconds, MIN_MEASURED_MS));
    if (tokens < MIN_MEASURED_TOKENS || milliseconds <= 0) return;
    const measured = this.ensureMeasurement(model, endpoint);
    measured.tokensPerSecond = average(measured.tokensPerSecond, (tokens * 1_000) / milliseconds);
  }

  /**
   * Records a failure. The endpoint is avoided for longer with each failure in a row, up to a minute, and at least for
   * as long as it requested. Only its own failures count: a caller who can make the gateway fail must not move all
   * requests to a more expensive endpoint.
   */
  recordFailure(model: Model, endpoint: Endpoint, failure: UpstreamError): void {
    const { code, retryAfterSeconds, isInternal, isResting, operatorProblem } = failure;
    if (isInternal || IGNORED_FAILURE_CODES.has(code)) return;
    if (isResting || operatorProblem?.scope === 'request') return;
    const measured = this.ensureMeasurement(model, endpoint);
    if (operatorProblem?.scope === 'endpoint') this.beginRest(measured, endpoint, operatorProblem);
    const pause = Math.min(MIN_PAUSE_MS * 2 ** measured.failures++, MAX_PAUSE_MS);
    const requestedPauseMs = (retryAfterSeconds ?? 0) * 1_000;
    measured.coolUntil = this.clock.nowMs() + Math.max(pause, requestedPauseMs);
  }

  private beginRest({ rest }: Measurement, { upstream, model }: Endpoint, problem: OperatorProblem): void {
    if (!rest.isOngoing)
      this.reportError(
        `the provider ${upstream} ${describeProblem(problem.reason)}: ${model}`,
        new ActionRequiredError('its endpoint is not called, or only rarely, until this is solved'),
      );
    rest.begin(problem, 0);
  }

  private ensureMeasurement(model: Model, endpoint: Endpoint): Measurement {
    const key = toKey(model, endpoint);
    const measurement = this.measurements.get(key) ?? {
      latencyMs: undefined,
      tokensPerSecond: undefined,
      failures: 0,
      coolUntil: 0,
      rest: new Rest(() => this.clock.nowMs()),
    };
    this.measurements.set(key, measurement);
    return measurement;
  }
}

function toKey({ id }: Model, { slug }: Endpoint): string {
  return `${slug} ${id}`;
}

function toSpeedName(model: Model, endpoint: Endpoint): string {
  return `tokens per second of ${toKey(model, endpoint)}`;
}

function average(previous: number | undefined, newest: number): number {
  return previous === undefined ? newest : previous + NEWEST_WEIGHT * (newest - previous);
}
