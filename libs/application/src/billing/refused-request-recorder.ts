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
const NO_MONEY: ReadonlySet<string> = new Set(['insufficient_balance', 'key_limit_exceeded']);
/** Streams that are known to be full, where what comes costs nothing at all, and accounts of which the log has said it. */
const KNOWN = 10_000;

export class RefusedRequestRecorder {
  private readonly full = new LRUCache<string, true>({ max: KNOWN });
  /** Accounts that the house bears no more for, and until when. */
  private readonly costly = new LRUCache<string, string>({ max: KNOWN });

  constructor(
    private readonly refused: RefusedRequests,
    private readonly clock: Clock,
    private readonly alarm: Runtime['reportError'],
  ) {}

  /** The same payer; what it refuses is noted before the refusal is answered. */
  payerOf(payer: Payer, caller: Caller): Payer {
    return new NotedPayer(payer, async (request, { code, details: { until = '' } }) => {
      if (NO_MONEY.has(code)) await this.note(request, caller, code);
      else if (code === 'too_much_borne') this.say(payer.id, until);
    });
  }

  private say(account: string, until: string): void {
    if (this.costly.get(account) === until) return;
    this.costly.set(account, until);
    this.alarm(`${account} is refused until ${until}: its requests have cost the house too much`, undefined);
  }

  /** A refusal that cannot be noted is a refusal all the same. */
  private async note({ holdId: requestId, query }: HoldRequest, caller: Caller, errorCode: string): Promise<void> {
    const at = this.clock.now();
    const id = toRefusedRequestsStreamId(caller.accountId, at);
    if (this.full.has(id)) return;
    try {
      const data = { ...caller, requestId, query, errorCode, at };
      const { events } = await this.refused.run(
        id,
        { type: 'NoteRefusal', data },
        createRootCause(toActor(caller), requestId),
      );
      if (events.length === 0) this.full.set(id, true);
    } catch (error) {
      this.alarm('a refusal could not be noted', error);
    }
  }
}

class NotedPayer extends PayerDecorator {
  constructor(
    payer: Payer,
    private readonly note: (request: HoldRequest, refusal: Rejection) => Promise<void>,
  ) {
    super(payer);
  }

  override async take(request: HoldRequest): Promise<Hold> {
    try {
      return await this.payer.take(request);
    } catch (error) {
      if (error instanceof Rejection) await this.note(request, error);
      throw error;
    }
  }
}
