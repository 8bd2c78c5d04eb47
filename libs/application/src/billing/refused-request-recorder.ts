/**
 * Records rejected holds: a lack of money in the query history, up to a limit, and an exceeded loss limit in the log.
 */
import { LRUCache } from 'lru-cache';
import { toRefusedRequestsStreamId } from '#domain';
import { createRootCause, limitEntries, Rejection, type Runtime } from '#kernel';
import type { Clock } from '../clock.ts';
import type { RefusedRequests } from '../streams.ts';
import { type Caller, type Hold, type HoldRequest, type Payer, PayerDecorator, toActor } from './payer.ts';

/** Rejections for lack of money. */
const INSUFFICIENT_FUNDS_CODES: ReadonlySet<string> = new Set(['insufficient_balance', 'key_limit_exceeded']);
/**
 * Maximum entries of each cache: the streams that are full and accept no more events, and the accounts whose loss limit
 * was logged.
 */
const MAX_CACHE_ENTRIES = 10_000;

export class RefusedRequestRecorder {
  private readonly fullStreams = new LRUCache<string, true>(limitEntries(MAX_CACHE_ENTRIES));
  /** By stream name of the account: until when its requests are rejected. */
  private readonly reportedLossLimits = new LRUCache<string, string>(limitEntries(MAX_CACHE_ENTRIES));

  constructor(
    private readonly refusedRequests: RefusedRequests,
    private readonly clock: Clock,
    private readonly reportError: Runtime['reportError'],
  ) {}

  /** Returns a payer that records the rejections of `payer` before it throws them. */
  wrapPayer(payer: Payer, caller: Caller): Payer {
    return new RecordingPayer(payer, async (request, { code, details: { until = '' } }) => {
      if (INSUFFICIENT_FUNDS_CODES.has(code)) await this.record(request, caller, code);
      else if (code === 'too_much_borne') this.reportLossLimit(payer.id, until);
    });
  }

  private reportLossLimit(account: string, until: string): void {
    if (this.reportedLossLimits.get(account) === until) return;
    this.reportedLossLimits.set(account, until);
    this.reportError(`${account} is rejected until ${until}: its failed requests exceeded the loss limit`, undefined);
  }

  /** Records a rejection. If that fails, the request is rejected anyway. */
  private async record({ holdId: requestId, query }: HoldRequest, caller: Caller, errorCode: string): Promise<void> {
    const at = this.clock.now();
    const id = toRefusedRequestsStreamId(caller.accountId, at);
    if (this.fullStreams.has(id)) return;
    try {
      const data = { ...caller, requestId, query, errorCode, at };
      const { events } = await this.refusedRequests.run(
        id,
        { type: 'RecordRefusedRequest', data },
        createRootCause(toActor(caller), requestId),
      );
      if (events.length === 0) this.fullStreams.set(id, true);
    } catch (error) {
      this.reportError('a rejected request could not be recorded', error);
    }
  }
}

class RecordingPayer extends PayerDecorator {
  constructor(
    payer: Payer,
    private readonly onRejected: (request: HoldRequest, rejection: Rejection) => Promise<void>,
  ) {
    super(payer);
  }

  override assertAffordable(request: HoldRequest): Promise<void> {
    return this.recordRejection(request, this.payer.assertAffordable(request));
  }

  override hold(request: HoldRequest): Promise<Hold> {
    return this.recordRejection(request, this.payer.hold(request));
  }

  private async recordRejection<T>(request: HoldRequest, result: Promise<T>): Promise<T> {
    try {
      return await result;
    } catch (error) {
      if (error instanceof Rejection) await this.onRejected(request, error);
      throw error;
    }
  }
}
