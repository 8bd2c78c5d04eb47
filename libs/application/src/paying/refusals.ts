/** Requests that were refused for lack of money are shown in the query history, as far as they are not too many. */
import { LRUCache } from 'lru-cache';
import { refusalsOf } from '#domain';
import { Rejection, type Runtime, startedBy } from '#kernel';
import type { Clock } from '../clock.ts';
import type { RefusedRequests } from '../streams.ts';
import { actorOf, type Caller, type Hold, type HoldRequest, type Payer, PayerBefore } from './payer.ts';

/** Rejections that say that there is no money. */
const NO_MONEY: ReadonlySet<string> = new Set(['insufficient_balance', 'key_limit_exceeded']);
/** Streams that are known to be full: what comes then costs nothing at all. */
const KNOWN_FULL = 10_000;

export class Refusals {
  private readonly full = new LRUCache<string, true>({ max: KNOWN_FULL });

  constructor(
    private readonly refused: RefusedRequests,
    private readonly clock: Clock,
    private readonly alarm: Runtime['alarm'],
  ) {}

  /** The same payer; what it refuses for lack of money is noted before the refusal is answered. */
  payerOf(payer: Payer, caller: Caller): Payer {
    return new NotedPayer(payer, (request, code) => this.note(request, caller, code));
  }

  /** A refusal that cannot be noted is a refusal all the same. */
  private async note({ holdId: requestId, query }: HoldRequest, caller: Caller, errorCode: string): Promise<void> {
    const at = this.clock.now();
    const id = refusalsOf(caller.accountId, at);
    if (this.full.has(id)) return;
    try {
      const data = { ...caller, requestId, query, errorCode, at };
      const { events } = await this.refused.run(
        id,
        { type: 'NoteRefusal', data },
        startedBy(actorOf(caller), requestId),
      );
      if (events.length === 0) this.full.set(id, true);
    } catch (error) {
      this.alarm('a refusal could not be noted', error);
    }
  }
}

class NotedPayer extends PayerBefore {
  constructor(
    payer: Payer,
    private readonly note: (request: HoldRequest, errorCode: string) => Promise<void>,
  ) {
    super(payer);
  }

  override async take(request: HoldRequest): Promise<Hold> {
    try {
      return await this.payer.take(request);
    } catch (error) {
      if (error instanceof Rejection && NO_MONEY.has(error.code)) await this.note(request, error.code);
      throw error;
    }
  }
}
