/**
 * Holds that are refused: for lack of money, which the query history shows as far as they are not too many, and for what the
 * house has borne, which the log says.
 */
import { LRUCache } from 'lru-cache';
import { toRefusedRequestsStreamId } from '#domain';
import { createRootCause, Rejection, type Runtime } from '#kernel';
import type { Clock } from '../clock.ts';
import type { RefusedRequests } from '../streams.ts';
import { type Caller, type Hold, type HoldRequest, type Payer, PayerDecorator, toActor } from './payer.ts';

/** Rejections that say that there is no money. */
const INSUFFICIENT_FUNDS_CODES: ReadonlySet<string> = new Set(['insufficient_balance', 'key_limit_exceeded']);
/** Streams that are known to be full, where what comes costs nothing at all, and accounts of which the log has said it. */
const MAX_CACHE_ENTRIES = 10_000;

export class RefusedRequestRecorder {
  private readonly fullStreams = new LRUCache<string, true>({ max: MAX_CACHE_ENTRIES });
  /** Accounts that the house bears no more for, and until when. */
  private readonly reportedLossLimits = new LRUCache<string, string>({ max: MAX_CACHE_ENTRIES });

  constructor(
    private readonly refusedRequests: RefusedRequests,
    private readonly clock: Clock,
    private readonly reportError: Runtime['reportError'],
  ) {}

  /** The same payer; what it refuses is noted before the refusal is answered. */
  wrapPayer(payer: Payer, caller: Caller): Payer {
    return new RecordingPayer(payer, async (request, { code, details: { until = '' } }) => {
      if (INSUFFICIENT_FUNDS_CODES.has(code)) await this.record(request, caller, code);
      else if (code === 'too_much_borne') this.reportLossLimit(payer.id, until);
    });
  }

  private reportLossLimit(account: string, until: string): void {
    if (this.reportedLossLimits.get(account) === until) return;
    this.reportedLossLimits.set(account, until);
    this.reportError(`${account} is refused until ${until}: its requests have cost the house too much`, undefined);
  }

  /** A refusal that cannot be noted is a refusal all the same. */
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
      this.reportError('a refusal could not be noted', error);
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

  override async hold(request: HoldRequest): Promise<Hold> {
    try {
      return await this.payer.hold(request);
    } catch (error) {
      if (error instanceof Rejection) await this.onRejected(request, error);
      throw error;
    }
  }
}
