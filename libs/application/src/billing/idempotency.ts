/**
 * `IdempotencyService-Key`: the same request with the same key is served once, and answered as often as it comes. A proof of payment
 * is the key of the one request that it pays for.
 *
 * A key is claimed before money is held, in one insert, for a few seconds. Once the money is held the claim is confirmed,
 * for as long as the hold lives, and only then is anything called that costs something. The answer is kept before its end
 * is sent. Where a claim has no answer because its gateway died: one that was not confirmed cost nothing, and of one that
 * was, the payer's facts say whether its hold was charged. Then it is not served again.
 */
import { ACCOUNT, getHoldResolution, type HoldEvent } from '#domain';
import {
  createRootCause,
  type EventReader,
  type Runtime,
  type StoredEvent,
  StoreUnavailableError,
  toStreamName,
} from '#kernel';
import type { Clock } from '../clock.ts';
import { TooManyRequestsError } from '../rate-limiter.ts';
import type { Secrets } from '../secrets.ts';
import type { StorageQuota } from '../storage-quota.ts';
import type { CallLimits } from './billing-engine.ts';
import type {
  ClaimOutcome,
  ExistingClaim,
  IdempotencyClaim,
  IdempotencyStore,
  SavedHttpResponse,
} from './idempotency-store.ts';
import { IdempotentPayer } from './idempotent-payer.ts';
import type { Payer } from './payer.ts';
import type { PayerFactory } from './payer-factory.ts';

const RETRY_AFTER_SECONDS = 2;
/** Answers are kept for a day, each from its own time on. */
const ROOM_AGAIN_SECONDS = 3_600;
/** Room is looked at before a request is served; what runs at once may fill it so many times, and not more. */
const ROOM_FOR_RUNNING = 2;
const ACCOUNTS = toStreamName(ACCOUNT, '');
/** With it a confirmed claim is respected for as long as its hold, so a request that died frees both at the same time. */
const LEASE_MARGIN_MS = 60_000;
/** After which an answer is not waited for any more whose request was charged. */
const LOST_AFTER_MS = 10_000;

export const IDEMPOTENCY_ERROR_TYPES = [
  'idempotency_key_reused',
  'idempotency_in_progress',
  'idempotency_answer_lost',
] as const;

/** How an error names what was used before. */
export type IdempotencyKeySource = 'Idempotency-Key' | 'payment';

/** A request whose Idempotency-Key was used before, and that cannot be answered as that one was. */
export class IdempotencyConflictError extends Error {
  override readonly name = 'IdempotencyConflictError';

  constructor(
    readonly type: (typeof IDEMPOTENCY_ERROR_TYPES)[number],
    message: string,
    readonly of: IdempotencyKeySource,
    readonly retryAfterSeconds?: number,
  ) {
    super(message);
  }
}

/** A request with an Idempotency-Key. */
export interface IdempotentRequest {
  /** The name of the payer's stream. */
  readonly payer: string;
  readonly key: string;
  readonly named: IdempotencyKeySource;
  /** What must be the same for the answer to be the same: the path and the body. */
  readonly about: string;
  readonly requestId: string;
  /** Whether the caller's credential is still good. A hold would see; for a replay nothing is held. @throws Error */
  mayRead(): Promise<unknown>;
  /**
   * What an earlier request has left behind that held money, where its answer follows from that: it goes on without the
   * gateway that may have died. Undefined where there is nothing.
   */
  leftBy?(requestId: string): Promise<SavedHttpResponse | undefined>;
  /** Who pays when the request was charged, and its answer lost with the gateway that died. Else it is not served again. */
  payerAgain?(): Payer;
}

/** The request is to be served: with this payer, and `ended` is called with the answer, if it can be kept, before its end is sent. */
export interface ClaimedRequest {
  readonly payer: Payer;
  ended(answer: SavedHttpResponse | undefined): Promise<void>;
}

export interface IdempotencyDependencies {
  readonly kept: IdempotencyStore;
  readonly room: StorageQuota;
  readonly facts: EventReader;
  readonly payers: PayerFactory;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly alarm: Runtime['reportError'];
}

/** How long the key of a request that holds money stays taken when its gateway is silent. */
export function getClaimLeaseMs({ totalTimeoutMs, drainTimeoutMs }: CallLimits): number {
  return totalTimeoutMs + drainTimeoutMs + LEASE_MARGIN_MS;
}

/** Claims idempotency keys. */
export class IdempotencyService {
  constructor(private readonly ports: IdempotencyDependencies) {}

  /**
   * Claims the key of a request that is known to be well-formed, before anything is done for it.
   * @returns how it is to be served, or the answer that it had
   * @throws IdempotencyConflictError when the key is another request's, or its request runs, or its answer is lost;
   *   TooManyRequestsError when no more answers are kept
   */
  async claim(request: IdempotentRequest, payer: Payer): Promise<ClaimedRequest | SavedHttpResponse> {
    const claim = await this.claimed(request);
    if (claim === undefined) return { payer, ended: async () => {} }; // no such account, which is for the hold to say
    if ('body' in claim) return claim;
    const again = claim.again ? request.payerAgain?.() : undefined;
    return this.served(claim, again ?? payer, request.named);
  }

  /**
   * The same for a request that creates something and holds no money. What was created is kept, and nothing else: a request
   * that was refused can be tried again. Where its gateway dies before the answer is kept, the next one creates once more.
   */
  async claimCreation(request: IdempotentRequest): Promise<Pick<ClaimedRequest, 'ended'> | SavedHttpResponse> {
    const claim = await this.claimed(request);
    if (claim === undefined) return { ended: async () => {} };
    if ('body' in claim) return claim;
    const isCreated = (answer?: SavedHttpResponse) => answer !== undefined && answer.status < 300;
    return { ended: (answer) => this.end(claim, answer && isCreated(answer) ? answer : 'unpaid') };
  }

  /** The claim of a request, or the answer to an earlier one; undefined when there is no such payer. */
  private async claimed(request: IdempotentRequest): Promise<OwnClaim | SavedHttpResponse | undefined> {
    const { facts, kept, secrets } = this.ports;
    const { payer } = request;
    const head = await facts.readHead(payer);
    if (head === undefined) return undefined;
    const claim: OwnClaim = {
      payer,
      // Neither is stored as it is, or could be guessed by its hash.
      key: secrets.digest(`idempotency key ${request.key}`),
      request: secrets.digest(`idempotent request ${request.about}`),
      requestId: request.requestId,
      revision: head.revision,
      owner: request.requestId,
      again: false,
    };
    const stored = await available(kept.claim(claim));
    if (stored !== undefined) return this.withRoom(claim, stored);
    await request.mayRead();
    return this.answeredBefore(claim, request);
  }

  /** @throws TooManyRequestsError where no more answers are kept for its account: who sends a key relies on it */
  private async withRoom(claim: OwnClaim, stored: number): Promise<OwnClaim> {
    const { kept, room } = this.ports;
    if (stored < room.least || !claim.payer.startsWith(ACCOUNTS)) return claim;
    if (stored < (await room.of(claim.payer.slice(ACCOUNTS.length)))) return claim;
    await available(kept.end(claim, 'unpaid'));
    const message = `The answers that are kept for this account take up all the room that it has (${stored} bytes): send the request without an Idempotency-Key`;
    throw new TooManyRequestsError(message, ROOM_AGAIN_SECONDS);
  }

  /** An answer that cannot be kept is delivered all the same: the next request gets 409, that it is lost. */
  private async end(claim: IdempotencyClaim, ending: ClaimOutcome): Promise<void> {
    const { kept, room } = this.ports;
    try {
      const accountId = claim.payer.startsWith(ACCOUNTS) ? claim.payer.slice(ACCOUNTS.length) : undefined;
      if (accountId === undefined || typeof ending === 'string') await kept.end(claim, ending);
      else await kept.end(claim, ending, ROOM_FOR_RUNNING * (await room.of(accountId)));
    } catch (error) {
      this.ports.alarm('an answer could not be kept', error);
    }
  }

  /** The answer to an earlier request with the same key, or the claim, where this request has taken its key over. */
  private async answeredBefore(claim: OwnClaim, request: IdempotentRequest): Promise<SavedHttpResponse | OwnClaim> {
    const { kept } = this.ports;
    const { named, leftBy, payerAgain } = request;
    const earlier = await available(kept.find(claim));
    if (!earlier) throw inProgress(named); // it has just ended without being charged
    if (earlier.request !== claim.request) throw reused(named);
    if (earlier.answer) return kept.open(earlier.answer);
    const left = earlier.held ? await leftBy?.(earlier.requestId) : undefined;
    if (left) return left;
    if (earlier.lost) throw lost(named);
    if (earlier.running && !(await this.givenUp(earlier, payerAgain !== undefined))) throw inProgress(named);
    const again = earlier.held && (await this.wasCharged(earlier, request));
    if (!(await available(kept.takeOver(earlier, claim)))) throw inProgress(named);
    return { ...claim, again };
  }

  /**
   * Gives up a claim that is not waited for any more, because its hold has expired, or was charged a while ago: its gateway has
   * died, or will not charge it. Returns whether that is so.
   */
  private async givenUp(earlier: ExistingClaim, alsoCharged: boolean): Promise<boolean> {
    const { payers, kept } = this.ports;
    if (!earlier.held) return false;
    const holds = await payers.endOverdueHolds(earlier.payer, createRootCause('gateway', earlier.requestId));
    const ended = getHoldResolution(earlier.requestId, holds);
    // A job releases its hold long after its request was answered.
    const isFree = ended === 'expired' || ended === 'released';
    const isOver = isFree || (alsoCharged && ended === 'settled' && (await this.isLongCharged(earlier)));
    return isOver && available(kept.end(earlier, 'unknown'));
  }

  /** An answer is kept in the moment behind its charge: one that is not there a while later is lost. */
  private async isLongCharged(claim: IdempotencyClaim): Promise<boolean> {
    const { facts, clock } = this.ports;
    const { at } = await holdOf(claim, facts);
    return clock.milliseconds() - Date.parse(at) > LOST_AFTER_MS;
  }

  /**
   * What became of the hold of a request whose gateway has died after it had made it: whether it was charged, where it may be
   * served again all the same.
   * @throws IdempotencyConflictError unless it ended without being charged, or may
   */
  private async wasCharged(earlier: ExistingClaim, { named, payerAgain }: IdempotentRequest): Promise<boolean> {
    const { payers, facts, kept } = this.ports;
    await payers.endOverdueHolds(earlier.payer, createRootCause('gateway', earlier.requestId));
    const { standing } = await holdOf(earlier, facts);
    if (standing === 'charged' && !payerAgain) {
      await available(kept.end(earlier, 'lost'));
      throw lost(named);
    }
    if (standing !== 'unpaid' && standing !== 'charged') throw inProgress(named);
    return standing === 'charged';
  }

  private served(claim: IdempotencyClaim, payer: Payer, named: IdempotencyKeySource): ClaimedRequest {
    const { kept } = this.ports;
    const claimed = new IdempotentPayer(payer, async () => {
      // A request that was taken for dead while its money was being held is not served: another one is.
      if (!(await available(kept.confirm(claim)))) throw inProgress(named);
    });
    const ended = (answer: SavedHttpResponse | undefined) => {
      if (claimed.standing === 'charged') return this.end(claim, answer ?? 'lost');
      return this.end(claim, claimed.standing === 'open' ? 'unknown' : 'unpaid');
    };
    return { payer: claimed, ended };
  }
}

/** A claim of this process. */
interface OwnClaim extends IdempotencyClaim {
  /** Its request was charged before, and its answer lost with the gateway that died. */
  readonly again: boolean;
}

type HoldStanding = 'open' | 'charged' | 'unpaid';

/** What a hold is after a fact about it. One that ended unpaid stays so, whatever comes late. */
const STANDINGS: Partial<Record<HoldEvent['type'], HoldStanding>> = {
  FundsHeld: 'open',
  HoldSettled: 'charged',
  HoldReleased: 'unpaid',
  HoldExpired: 'unpaid',
};

interface HoldOf {
  /** Undefined when it was never made. */
  readonly standing: HoldStanding | undefined;
  /** When that was stated. */
  readonly at: string;
}

/** What has become of the hold of a claim, by its payer's facts behind it. */
async function holdOf({ payer, requestId, revision }: IdempotencyClaim, facts: EventReader): Promise<HoldOf> {
  let hold: HoldOf = { standing: undefined, at: '' };
  for await (const batch of facts.read(payer, revision)) {
    for (const { type, data } of batch as readonly StoredEvent<HoldEvent>[]) {
      if (!('holdId' in data) || data.holdId !== requestId) continue;
      const standing = STANDINGS[type];
      if (standing) hold = { standing, at: data.at };
    }
  }
  return hold;
}

/** Without knowing whose a key is nothing can be served. */
async function available<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    throw new StoreUnavailableError('idempotency keys cannot be looked up', { cause });
  }
}

function reused(named: IdempotencyKeySource): IdempotencyConflictError {
  return new IdempotencyConflictError('idempotency_key_reused', `This ${named} was used with another request`, named);
}

function inProgress(named: IdempotencyKeySource): IdempotencyConflictError {
  const message = `A request with this ${named} is in progress; ask again when it has ended`;
  return new IdempotencyConflictError('idempotency_in_progress', message, named, RETRY_AFTER_SECONDS);
}

function lost(named: IdempotencyKeySource): IdempotencyConflictError {
  const message = `The request with this ${named} was charged, but its answer was lost; it is not served again with it`;
  return new IdempotencyConflictError('idempotency_answer_lost', message, named);
}
