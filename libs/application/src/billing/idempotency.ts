/**
 * `Idempotency-Key`: the same request with the same key is served once, and answered as often as it comes. A proof of payment
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
const QUOTA_RETRY_AFTER_SECONDS = 3_600;
/** Room is looked at before a request is served; what runs at once may fill it so many times, and not more. */
const QUOTA_OVERSHOOT_FACTOR = 2;
const ACCOUNTS = toStreamName(ACCOUNT, '');
/** With it a confirmed claim is respected for as long as its hold, so a request that died frees both at the same time. */
const LEASE_MARGIN_MS = 60_000;
/** After which an answer is not waited for any more whose request was charged. */
const RESPONSE_LOST_AFTER_MS = 10_000;

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
    readonly source: IdempotencyKeySource,
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
  readonly source: IdempotencyKeySource;
  /** What must be the same for the answer to be the same: the path and the body. */
  readonly fingerprint: string;
  readonly requestId: string;
  /** Whether the caller's credential is still good. A hold would see; for a replay nothing is held. @throws Error */
  assertCredentialValid(): Promise<unknown>;
  /**
   * What an earlier request has left behind that held money, where its answer follows from that: it goes on without the
   * gateway that may have died. Undefined where there is nothing.
   */
  recoverResponse?(requestId: string): Promise<SavedHttpResponse | undefined>;
  /** Who pays when the request was charged, and its answer lost with the gateway that died. Else it is not served again. */
  createRetryPayer?(): Payer;
}

/** The request is to be served: with this payer, and `complete` is called with the answer, if it can be kept, before its end is sent. */
export interface ClaimedRequest {
  readonly payer: Payer;
  complete(response: SavedHttpResponse | undefined): Promise<void>;
}

export interface IdempotencyDependencies {
  readonly store: IdempotencyStore;
  readonly quota: StorageQuota;
  readonly events: EventReader;
  readonly payers: PayerFactory;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly reportError: Runtime['reportError'];
}

/** How long the key of a request that holds money stays taken when its gateway is silent. */
export function getClaimLeaseMs({ totalTimeoutMs, drainTimeoutMs }: CallLimits): number {
  return totalTimeoutMs + drainTimeoutMs + LEASE_MARGIN_MS;
}

/** Claims idempotency keys. */
export class IdempotencyService {
  constructor(private readonly dependencies: IdempotencyDependencies) {}

  /**
   * Claims the key of a request that is known to be well-formed, before anything is done for it.
   * @returns how it is to be served, or the answer that it had
   * @throws IdempotencyConflictError when the key is another request's, or its request runs, or its answer is lost;
   *   TooManyRequestsError when no more answers are kept
   */
  async claim(request: IdempotentRequest, payer: Payer): Promise<ClaimedRequest | SavedHttpResponse> {
    const claim = await this.claimKey(request);
    if (claim === undefined) return { payer, complete: async () => {} }; // no such account, which is for the hold to say
    if ('body' in claim) return claim;
    const retryPayer = claim.isRetry ? request.createRetryPayer?.() : undefined;
    return this.createClaimedRequest(claim, retryPayer ?? payer, request.source);
  }

  /**
   * The same for a request that creates something and holds no money. What was created is kept, and nothing else: a request
   * that was refused can be tried again. Where its gateway dies before the answer is kept, the next one creates once more.
   */
  async claimCreation(request: IdempotentRequest): Promise<Pick<ClaimedRequest, 'complete'> | SavedHttpResponse> {
    const claim = await this.claimKey(request);
    if (claim === undefined) return { complete: async () => {} };
    if ('body' in claim) return claim;
    const isCreated = (response?: SavedHttpResponse) => response !== undefined && response.status < 300;
    return { complete: (response) => this.end(claim, response && isCreated(response) ? response : 'unpaid') };
  }

  /** The claim of a request, or the answer to an earlier one; undefined when there is no such payer. */
  private async claimKey(request: IdempotentRequest): Promise<OwnClaim | SavedHttpResponse | undefined> {
    const { events, store, secrets } = this.dependencies;
    const { payer } = request;
    const head = await events.readHead(payer);
    if (head === undefined) return undefined;
    const claim: OwnClaim = {
      payer,
      // Neither is stored as it is, or could be guessed by its hash.
      key: secrets.hashWithOldestKey(`idempotency key ${request.key}`),
      request: secrets.hashWithOldestKey(`idempotent request ${request.fingerprint}`),
      requestId: request.requestId,
      revision: head.revision,
      owner: request.requestId,
      isRetry: false,
    };
    const stored = await mapStoreErrors(store.claim(claim));
    if (stored !== undefined) return this.ensureQuota(claim, stored);
    await request.assertCredentialValid();
    return this.replayOrTakeOver(claim, request);
  }

  /** @throws TooManyRequestsError where no more answers are kept for its account: who sends a key relies on it */
  private async ensureQuota(claim: OwnClaim, stored: number): Promise<OwnClaim> {
    const { store, quota } = this.dependencies;
    if (stored < quota.minBytes || !claim.payer.startsWith(ACCOUNTS)) return claim;
    if (stored < (await quota.loadMaxBytes(claim.payer.slice(ACCOUNTS.length)))) return claim;
    await mapStoreErrors(store.end(claim, 'unpaid'));
    const message = `The answers that are kept for this account take up all the room that it has (${stored} bytes): send the request without an Idempotency-Key`;
    throw new TooManyRequestsError(message, QUOTA_RETRY_AFTER_SECONDS);
  }

  /** An answer that cannot be kept is delivered all the same: the next request gets 409, that it is lost. */
  private async end(claim: IdempotencyClaim, outcome: ClaimOutcome): Promise<void> {
    const { store, quota } = this.dependencies;
    try {
      const accountId = claim.payer.startsWith(ACCOUNTS) ? claim.payer.slice(ACCOUNTS.length) : undefined;
      if (accountId === undefined || typeof outcome === 'string') await store.end(claim, outcome);
      else await store.end(claim, outcome, QUOTA_OVERSHOOT_FACTOR * (await quota.loadMaxBytes(accountId)));
    } catch (error) {
      this.dependencies.reportError('an answer could not be kept', error);
    }
  }

  /** The answer to an earlier request with the same key, or the claim, where this request has taken its key over. */
  private async replayOrTakeOver(claim: OwnClaim, request: IdempotentRequest): Promise<SavedHttpResponse | OwnClaim> {
    const { store } = this.dependencies;
    const { source, recoverResponse, createRetryPayer } = request;
    const existing = await mapStoreErrors(store.find(claim));
    if (!existing) throw inProgressError(source); // it has just ended without being charged
    if (existing.request !== claim.request) throw keyReusedError(source);
    if (existing.sealedResponse) return store.open(existing.sealedResponse);
    const recovered = existing.hasHold ? await recoverResponse?.(existing.requestId) : undefined;
    if (recovered) return recovered;
    if (existing.isLost) throw responseLostError(source);
    if (existing.isRunning && !(await this.endStaleClaim(existing, createRetryPayer !== undefined)))
      throw inProgressError(source);
    const isRetry = existing.hasHold && (await this.checkCharged(existing, request));
    if (!(await mapStoreErrors(store.takeOver(existing, claim)))) throw inProgressError(source);
    return { ...claim, isRetry };
  }

  /**
   * Gives up a claim that is not waited for any more, because its hold has expired, or was charged a while ago: its gateway has
   * died, or will not charge it. Returns whether that is so.
   */
  private async endStaleClaim(existing: ExistingClaim, includesCharged: boolean): Promise<boolean> {
    const { payers, store } = this.dependencies;
    if (!existing.hasHold) return false;
    const holds = await payers.endOverdueHolds(existing.payer, createRootCause('gateway', existing.requestId));
    const ended = getHoldResolution(existing.requestId, holds);
    // A job releases its hold long after its request was answered.
    const isFree = ended === 'expired' || ended === 'released';
    const isOver = isFree || (includesCharged && ended === 'settled' && (await this.wasChargedLongAgo(existing)));
    return isOver && mapStoreErrors(store.end(existing, 'unknown'));
  }

  /** An answer is kept in the moment behind its charge: one that is not there a while later is lost. */
  private async wasChargedLongAgo(claim: IdempotencyClaim): Promise<boolean> {
    const { events, clock } = this.dependencies;
    const { at } = await loadHoldStatus(claim, events);
    return clock.nowMs() - Date.parse(at) > RESPONSE_LOST_AFTER_MS;
  }

  /**
   * What became of the hold of a request whose gateway has died after it had made it: whether it was charged, where it may be
   * served again all the same.
   * @throws IdempotencyConflictError unless it ended without being charged, or may
   */
  private async checkCharged(
    existing: ExistingClaim,
    { source, createRetryPayer }: IdempotentRequest,
  ): Promise<boolean> {
    const { payers, events, store } = this.dependencies;
    await payers.endOverdueHolds(existing.payer, createRootCause('gateway', existing.requestId));
    const { state } = await loadHoldStatus(existing, events);
    if (state === 'charged' && !createRetryPayer) {
      await mapStoreErrors(store.end(existing, 'lost'));
      throw responseLostError(source);
    }
    if (state !== 'unpaid' && state !== 'charged') throw inProgressError(source);
    return state === 'charged';
  }

  private createClaimedRequest(claim: IdempotencyClaim, payer: Payer, source: IdempotencyKeySource): ClaimedRequest {
    const { store } = this.dependencies;
    const claimed = new IdempotentPayer(payer, async () => {
      // A request that was taken for dead while its money was being held is not served: another one is.
      if (!(await mapStoreErrors(store.confirm(claim)))) throw inProgressError(source);
    });
    const complete = (response: SavedHttpResponse | undefined) => {
      if (claimed.chargeState === 'charged') return this.end(claim, response ?? 'lost');
      return this.end(claim, claimed.chargeState === 'open' ? 'unknown' : 'unpaid');
    };
    return { payer: claimed, complete };
  }
}

/** A claim of this process. */
interface OwnClaim extends IdempotencyClaim {
  /** Its request was charged before, and its answer lost with the gateway that died. */
  readonly isRetry: boolean;
}

type HoldState = 'open' | 'charged' | 'unpaid';

/** What a hold is after a fact about it. One that ended unpaid stays so, whatever comes late. */
const HOLD_STATES: Partial<Record<HoldEvent['type'], HoldState>> = {
  FundsHeld: 'open',
  HoldSettled: 'charged',
  HoldReleased: 'unpaid',
  HoldExpired: 'unpaid',
};

interface HoldStatus {
  /** Undefined when it was never made. */
  readonly state: HoldState | undefined;
  /** When that was stated. */
  readonly at: string;
}

/** What has become of the hold of a claim, by its payer's facts behind it. */
async function loadHoldStatus(
  { payer, requestId, revision }: IdempotencyClaim,
  events: EventReader,
): Promise<HoldStatus> {
  let hold: HoldStatus = { state: undefined, at: '' };
  for await (const batch of events.read(payer, revision)) {
    for (const { type, data } of batch as readonly StoredEvent<HoldEvent>[]) {
      if (!('holdId' in data) || data.holdId !== requestId) continue;
      const state = HOLD_STATES[type];
      if (state) hold = { state, at: data.at };
    }
  }
  return hold;
}

/** Without knowing whose a key is nothing can be served. */
async function mapStoreErrors<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (cause) {
    throw new StoreUnavailableError('idempotency keys cannot be looked up', { cause });
  }
}

function keyReusedError(source: IdempotencyKeySource): IdempotencyConflictError {
  return new IdempotencyConflictError('idempotency_key_reused', `This ${source} was used with another request`, source);
}

function inProgressError(source: IdempotencyKeySource): IdempotencyConflictError {
  const message = `A request with this ${source} is in progress; ask again when it has ended`;
  return new IdempotencyConflictError('idempotency_in_progress', message, source, RETRY_AFTER_SECONDS);
}

function responseLostError(source: IdempotencyKeySource): IdempotencyConflictError {
  const message = `The request with this ${source} was charged, but its answer was lost; it is not served again with it`;
  return new IdempotencyConflictError('idempotency_answer_lost', message, source);
}
