/**
 * `Idempotency-Key`: the same request with the same key is served once, and answered as often as it comes.
 *
 * A key is claimed before money is held, in one insert, for a few seconds. Once the money is held the claim is confirmed,
 * for as long as the hold lives, and only then is anything called that costs something. The answer is kept before its end
 * is sent. Where a claim has no answer because its gateway died: one that was not confirmed cost nothing, and of one that
 * was, the account's facts say whether its hold was charged. Then it is not served again.
 */
import { ACCOUNT, type AccountEvent, howEnded } from '#domain';
import { type FactReader, type Recorded, type Runtime, StoreUnavailable, startedBy, streamName } from '#kernel';
import type { Secrets } from '../secrets.ts';
import { ClaimedPayer } from './claimed-payer.ts';
import type { Claim, Earlier, Ending, KeptAnswer, KeptAnswers } from './kept-answers.ts';
import type { Caller, Payer } from './payer.ts';
import type { Payers } from './payers.ts';
import type { CallLimits } from './paying.ts';

const RETRY_AFTER_SECONDS = 2;
/** With it a confirmed claim is respected for as long as its hold, so a request that died frees both at the same time. */
const LEASE_MARGIN_MS = 60_000;

export const CONFLICTING_KEYS = [
  'idempotency_key_reused',
  'idempotency_in_progress',
  'idempotency_answer_lost',
] as const;

/** A request whose Idempotency-Key was used before, and that cannot be answered as that one was. */
export class IdempotencyConflict extends Error {
  override readonly name = 'IdempotencyConflict';

  constructor(
    readonly type: (typeof CONFLICTING_KEYS)[number],
    message: string,
    readonly retryAfterSeconds?: number,
  ) {
    super(message);
  }
}

/** A request with an Idempotency-Key. */
export interface KeyedRequest {
  readonly caller: Caller;
  readonly key: string;
  /** What must be the same for the answer to be the same: the path and the body. */
  readonly about: string;
  readonly requestId: string;
  /** Whether the caller's credential is still good. A hold would see; for a replay nothing is held. @throws Error */
  mayRead(): Promise<unknown>;
  /**
   * What an earlier request has left behind that held money, where its answer follows from that: it goes on without the
   * gateway that may have died. Undefined where there is nothing.
   */
  leftBy?(requestId: string): Promise<KeptAnswer | undefined>;
}

/** The request is to be served: with this payer, and `ended` is called with the answer, if it can be kept, before its end is sent. */
export interface Served {
  readonly payer: Payer;
  ended(answer: KeptAnswer | undefined): Promise<void>;
}

export interface IdempotencyPorts {
  readonly kept: KeptAnswers;
  readonly facts: FactReader;
  readonly payers: Payers;
  readonly secrets: Secrets;
  readonly alarm: Runtime['alarm'];
}

/** How long the key of a request that holds money stays taken when its gateway is silent. */
export function leaseOf({ totalTimeoutMs, drainTimeoutMs }: CallLimits): number {
  return totalTimeoutMs + drainTimeoutMs + LEASE_MARGIN_MS;
}

/** Claims idempotency keys. */
export class Idempotency {
  constructor(private readonly ports: IdempotencyPorts) {}

  /**
   * Claims the key of a request that is known to be well-formed, before anything is done for it.
   * @returns how it is to be served, or the answer that it had
   * @throws IdempotencyConflict when the key is another request's, or its request runs, or its answer is lost
   */
  async claim(request: KeyedRequest, payer: Payer): Promise<Served | KeptAnswer> {
    const claim = await this.claimed(request);
    if (claim === undefined) return { payer, ended: async () => {} }; // no such account, which is for the hold to say
    return 'body' in claim ? claim : this.served(claim, payer);
  }

  /**
   * The same for a request that creates something and holds no money. What was created is kept, and nothing else: a request
   * that was refused can be tried again. Where its gateway dies before the answer is kept, the next one creates once more.
   */
  async claimCreation(request: KeyedRequest): Promise<Pick<Served, 'ended'> | KeptAnswer> {
    const claim = await this.claimed(request);
    if (claim === undefined) return { ended: async () => {} };
    if ('body' in claim) return claim;
    const isCreated = (answer?: KeptAnswer) => answer !== undefined && answer.status < 300;
    return { ended: (answer) => this.end(claim, answer && isCreated(answer) ? answer : 'unpaid') };
  }

  /** The claim of a request, or the answer to an earlier one; undefined when there is no such account. */
  private async claimed(request: KeyedRequest): Promise<Claim | KeptAnswer | undefined> {
    const { facts, kept, secrets } = this.ports;
    const { accountId } = request.caller;
    const head = await facts.head(streamName(ACCOUNT, accountId));
    if (head === undefined) return undefined;
    const claim: Claim = {
      accountId,
      // Neither is stored as it is, or could be guessed by its hash.
      key: secrets.hash(`idempotency key ${request.key}`),
      request: secrets.hash(`idempotent request ${request.about}`),
      requestId: request.requestId,
      revision: head.revision,
      owner: request.requestId,
    };
    if (await available(kept.claim(claim))) return claim;
    await request.mayRead();
    return (await this.answeredBefore(claim, request)) ?? claim;
  }

  /** An answer that cannot be kept is delivered all the same: the next request gets 409, that it is lost. */
  private async end(claim: Claim, ending: Ending): Promise<void> {
    try {
      await this.ports.kept.end(claim, ending);
    } catch (error) {
      this.ports.alarm('an answer could not be kept', error);
    }
  }

  /** The answer to an earlier request with the same key; undefined when this one has taken its key over. */
  private async answeredBefore(claim: Claim, { leftBy }: KeyedRequest): Promise<KeptAnswer | undefined> {
    const { kept } = this.ports;
    const earlier = await available(kept.find(claim));
    if (!earlier) throw inProgress(); // it has just ended without being charged
    if (earlier.request !== claim.request) throw reused();
    if (earlier.answer) return kept.open(earlier.answer);
    const left = earlier.held ? await leftBy?.(earlier.requestId) : undefined;
    if (left) return left;
    if (earlier.lost) throw lost();
    if (earlier.running && !(await this.givenUp(earlier))) throw inProgress();
    if (earlier.held) await this.assertUnpaid(earlier);
    if (!(await available(kept.takeOver(earlier, claim)))) throw inProgress();
    return undefined;
  }

  /**
   * Gives up a claim that is not waited for any more, because its hold has expired: its gateway has died, or will not
   * charge it. Returns whether that is so.
   */
  private async givenUp(earlier: Earlier): Promise<boolean> {
    const { payers, kept } = this.ports;
    if (!earlier.held) return false;
    const account = await payers.endOverdueHolds(
      streamName(ACCOUNT, earlier.accountId),
      startedBy('gateway', earlier.requestId),
    );
    return howEnded(earlier.requestId, account) === 'expired' && available(kept.end(earlier, 'unknown'));
  }

  /**
   * What became of the hold of a request whose gateway has died after it had made it.
   * @throws IdempotencyConflict unless it ended without being charged
   */
  private async assertUnpaid(earlier: Earlier): Promise<void> {
    const { payers, facts, kept } = this.ports;
    await payers.endOverdueHolds(streamName(ACCOUNT, earlier.accountId), startedBy('gateway', earlier.requestId));
    const hold = await holdOf(earlier, facts);
    if (hold === 'charged') {
      await available(kept.end(earlier, 'lost'));
      throw lost();
    }
    if (hold !== 'unpaid') throw inProgress();
  }

  private served(claim: Claim, payer: Payer): Served {
    const { kept } = this.ports;
    const claimed = new ClaimedPayer(payer, async () => {
      // A request that was taken for dead while its money was being held is not served: another one is.
      if (!(await available(kept.confirm(claim)))) throw inProgress();
    });
    const ended = (answer: KeptAnswer | undefined) => {
      if (claimed.standing === 'charged') return this.end(claim, answer ?? 'lost');
      return this.end(claim, claimed.standing === 'open' ? 'unknown' : 'unpaid');
    };
    return { payer: claimed, ended };
  }
}

type HoldStanding = 'open' | 'charged' | 'unpaid';

/** What a hold is after a fact about it. One that ended unpaid stays so, whatever comes late. */
const STANDINGS: Partial<Record<AccountEvent['type'], HoldStanding>> = {
  FundsHeld: 'open',
  HoldSettled: 'charged',
  HoldReleased: 'unpaid',
  HoldExpired: 'unpaid',
};

/** What has become of the hold of a claim, by the account's facts behind it; undefined when it was never made. */
async function holdOf({ accountId, requestId, revision }: Claim, facts: FactReader): Promise<HoldStanding | undefined> {
  let standing: HoldStanding | undefined;
  for await (const batch of facts.read(streamName(ACCOUNT, accountId), revision)) {
    for (const { type, data } of batch as readonly Recorded<AccountEvent>[]) {
      if ('holdId' in data && data.holdId === requestId) standing = STANDINGS[type] ?? standing;
    }
  }
  return standing;
}

/** Without knowing whose a key is nothing can be served. */
async function available<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    throw new StoreUnavailable('idempotency keys cannot be looked up', { cause });
  }
}

function reused(): IdempotencyConflict {
  return new IdempotencyConflict('idempotency_key_reused', 'This Idempotency-Key was used with another request');
}

function inProgress(): IdempotencyConflict {
  const message = 'A request with this Idempotency-Key is in progress; its answer can be had when it has ended';
  return new IdempotencyConflict('idempotency_in_progress', message, RETRY_AFTER_SECONDS);
}

function lost(): IdempotencyConflict {
  const message =
    'The request with this Idempotency-Key was charged, but its answer was lost; it is not served again with this key';
  return new IdempotencyConflict('idempotency_answer_lost', message);
}
