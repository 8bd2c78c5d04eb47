/**
 * Charges a request with an `Idempotency-Key` at most once in 24 hours. A repetition gets the saved response, if there
 * is one. A request that was not charged is served again. A proof of payment is the key of the request that it pays
 * for.
 *
 * A key is claimed before money is held, with one insert and for a few seconds. The claim is renewed while the request
 * waits for money, and confirmed for the lifetime of the hold once money is held. Only then may a call be made that
 * costs money. The response is saved before its end is sent.
 *
 * If a gateway dies, its claim has no response. An unconfirmed claim cost nothing. For a confirmed claim the payer's
 * events show whether its hold was charged; if so, the request is not served again, unless it has a retry payer.
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
/** Some saved responses may expire within this time: each does 24 hours after its request. */
const QUOTA_RETRY_AFTER_SECONDS = 3_600;
/**
 * The quota is checked before a request is served. Requests that run at the same time can exceed it, up to this
 * multiple.
 */
const QUOTA_OVERSHOOT_FACTOR = 2;
const ACCOUNTS = toStreamName(ACCOUNT, '');
/** With this margin the lease of a confirmed claim ends at about the time at which its hold expires. */
const LEASE_MARGIN_MS = 60_000;
/** A response that is not saved this long after its charge counts as lost, if a retry payer can pay for another one. */
const RESPONSE_LOST_AFTER_MS = 10_000;

export const IDEMPOTENCY_ERROR_TYPES = [
  'idempotency_key_reused',
  'idempotency_in_progress',
  'idempotency_answer_lost',
] as const;

/** What an error message calls the key: the header, or the payment. */
export type IdempotencyKeySource = 'Idempotency-Key' | 'payment';

/** The key was used before, and this request cannot get the response of the earlier one, or not yet. */
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

export interface IdempotentRequest {
  /** Name of the payer's stream. */
  readonly payer: string;
  readonly key: string;
  readonly source: IdempotencyKeySource;
  /** Path and body as text or bytes, or their digest. Only a request with the same one gets the same response. */
  readonly fingerprint: string | readonly Buffer[];
  readonly requestId: string;
  /**
   * Checks that the caller's credential is still valid. A hold would check it, but a replay holds nothing.
   * @throws Error if the credential is no longer valid
   */
  assertCredentialValid(): Promise<unknown>;
  /**
   * Returns the response of an earlier request whose job does not depend on its gateway, which may have died.
   * @returns undefined if there is no such job
   */
  recoverResponse?(requestId: string): Promise<SavedHttpResponse | undefined>;
  /**
   * Creates the payer for a request that was charged and whose response was lost. If this method is omitted, such a
   * request is not served again.
   */
  createRetryPayer?(): Payer;
}

/**
 * A request that is to be served with this payer. `complete` is called before the end of the response is sent, with the
 * response if it can be saved.
 */
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

/** Returns how long a confirmed claim lasts if its gateway does not end it. */
export function getClaimLeaseMs({ totalTimeoutMs, drainTimeoutMs }: CallLimits): number {
  return totalTimeoutMs + drainTimeoutMs + LEASE_MARGIN_MS;
}

export class IdempotencyService {
  constructor(private readonly dependencies: IdempotencyDependencies) {}

  /**
   * Claims the key of a request that is well-formed, before anything is done for it.
   * @returns how to serve the request, or the saved response of an earlier one
   * @throws IdempotencyConflictError if the key belongs to another request, its request is running, or its response is
   *   lost; TooManyRequestsError if the account has used up its storage quota; StoreUnavailableError if the owner of
   *   the key is unknown; any error of `assertCredentialValid`
   */
  async claim(request: IdempotentRequest, payer: Payer): Promise<ClaimedRequest | SavedHttpResponse> {
    const claim = await this.claimKey(request);
    if (claim === undefined) return { payer, complete: async () => {} }; // unknown payer: its hold will be rejected
    if ('body' in claim) return claim;
    const retryPayer = claim.isRetry ? request.createRetryPayer?.() : undefined;
    return this.createClaimedRequest(claim, retryPayer ?? payer, request.source);
  }

  /**
   * Does the same as `claim` for a request that creates something and holds no money. Only the response to a creation
   * is saved, so a rejected request can be retried. If the gateway dies before the response is saved, a retry may
   * create a second object.
   */
  async claimCreation(request: IdempotentRequest): Promise<Pick<ClaimedRequest, 'complete'> | SavedHttpResponse> {
    const claim = await this.claimKey(request);
    if (claim === undefined) return { complete: async () => {} };
    if ('body' in claim) return claim;
    const isCreated = (response?: SavedHttpResponse) => response !== undefined && response.status < 300;
    return { complete: (response) => this.end(claim, response && isCreated(response) ? response : 'unpaid') };
  }

  /** Returns the claim of a request, or the response of an earlier one; undefined if the payer has no stream. */
  private async claimKey(request: IdempotentRequest): Promise<OwnClaim | SavedHttpResponse | undefined> {
    const { events, store, secrets } = this.dependencies;
    const { payer } = request;
    const head = await events.readHead(payer);
    if (head === undefined) return undefined;
    const claim: OwnClaim = {
      payer,
      // Keyed hashes: neither text is stored, and neither can be guessed from its hash.
      key: secrets.hashWithOldestKey(`idempotency key ${request.key}`),
      request: await secrets.hashContentWithOldestKey('idempotent request ', request.fingerprint),
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

  /**
   * Returns the claim if the payer has not used up its quota. Otherwise ends the claim and throws, because a client
   * that sends a key relies on the saved response.
   * @throws TooManyRequestsError if the account has used up its storage quota
   */
  private async ensureQuota(claim: OwnClaim, stored: number): Promise<OwnClaim> {
    const { store, quota } = this.dependencies;
    if (stored < quota.minBytes || !claim.payer.startsWith(ACCOUNTS)) return claim;
    if (stored < (await quota.loadMaxBytes(claim.payer.slice(ACCOUNTS.length)))) return claim;
    await mapStoreErrors(store.end(claim, 'unpaid'));
    const message = `This account stores ${stored} bytes, which use up its storage quota: send the request without an Idempotency-Key, or retry later`;
    throw new TooManyRequestsError(message, QUOTA_RETRY_AFTER_SECONDS);
  }

  /**
   * Ends a claim. A response that cannot be saved is delivered anyway; a repeated request then gets 409, because the
   * response is lost, or may be served again with its retry payer.
   */
  private async end(claim: IdempotencyClaim, outcome: ClaimOutcome): Promise<void> {
    const { store, quota } = this.dependencies;
    try {
      const accountId = claim.payer.startsWith(ACCOUNTS) ? claim.payer.slice(ACCOUNTS.length) : undefined;
      if (accountId === undefined || typeof outcome === 'string') await store.end(claim, outcome);
      else await store.end(claim, outcome, QUOTA_OVERSHOOT_FACTOR * (await quota.loadMaxBytes(accountId)));
    } catch (error) {
      this.dependencies.reportError('the claim of an idempotency key could not be ended', error);
    }
  }

  /**
   * Returns the response of an earlier request with the same key, or the claim if this request has taken over the key.
   * @throws IdempotencyConflictError, StoreUnavailableError
   */
  private async replayOrTakeOver(claim: OwnClaim, request: IdempotentRequest): Promise<SavedHttpResponse | OwnClaim> {
    const { store } = this.dependencies;
    const { source, recoverResponse, createRetryPayer } = request;
    const existing = await mapStoreErrors(store.find(claim));
    if (!existing) throw inProgressError(source); // the earlier request has just ended without a charge
    if (existing.request !== claim.request) throw keyReusedError(source);
    const saved = existing.sealedResponse && (await store.open(existing.sealedResponse));
    if (saved) return saved;
    const recovered = existing.hasHold ? await recoverResponse?.(existing.requestId) : undefined;
    if (recovered) return recovered;
    if (existing.isLost || existing.sealedResponse) throw responseLostError(source);
    if (existing.isRunning && !(await this.endStaleClaim(existing, createRetryPayer !== undefined)))
      throw inProgressError(source);
    const isRetry = existing.hasHold && (await this.checkCharged(existing, request));
    if (!(await mapStoreErrors(store.takeOver(existing, claim)))) throw inProgressError(source);
    return { ...claim, isRetry };
  }

  /**
   * Ends a claim that its gateway no longer completes, because the gateway has died or will not charge the hold. Such a
   * hold has expired or was released. With `includesCharged`, a hold that was charged some time ago counts as well.
   * @returns whether the claim was ended
   */
  private async endStaleClaim(existing: ExistingClaim, includesCharged: boolean): Promise<boolean> {
    const { payers, store } = this.dependencies;
    if (!existing.hasHold) return false;
    const holds = await payers.endOverdueHolds(existing.payer, createRootCause('gateway', existing.requestId));
    const ended = getHoldResolution(existing.requestId, holds);
    // A job that fails releases its hold, perhaps while the claim of its request still counts as running.
    const isFree = ended === 'expired' || ended === 'released' || ended === 'absorbed' || ended === 'reversed';
    const isOver = isFree || (includesCharged && ended === 'settled' && (await this.wasChargedLongAgo(existing)));
    return isOver && mapStoreErrors(store.end(existing, 'unknown'));
  }

  /**
   * Whether the charge is older than `RESPONSE_LOST_AFTER_MS`. A response is saved right after its charge, so one that
   * is still missing counts as lost.
   */
  private async wasChargedLongAgo(claim: IdempotencyClaim): Promise<boolean> {
    const { events, clock } = this.dependencies;
    const { at } = await loadHoldStatus(claim, events);
    return clock.nowMs() - Date.parse(at) > RESPONSE_LOST_AFTER_MS;
  }

  /**
   * Returns whether the earlier request was charged. Its claim does not state this, because its gateway died or did not
   * know. A request that was charged may be served again with its retry payer.
   * @throws IdempotencyConflictError if the request was charged and has no retry payer, or may still be charged
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
    // Another request is served instead if this one was considered dead while its money was being held.
    const confirm = async () => {
      if (!(await mapStoreErrors(store.confirm(claim)))) throw inProgressError(source);
    };
    const claimed = new IdempotentPayer(payer, { confirm, renew: () => store.renew(claim) });
    const complete = (response: SavedHttpResponse | undefined) => {
      if (claimed.chargeState === 'charged') return this.end(claim, response ?? 'lost');
      return this.end(claim, claimed.chargeState === 'open' ? 'unknown' : 'unpaid');
    };
    return { payer: claimed, complete };
  }
}

/** A claim that this process owns. */
interface OwnClaim extends IdempotencyClaim {
  /** The request was charged before, and its response was lost. */
  readonly isRetry: boolean;
}

type HoldState = 'open' | 'charged' | 'unpaid';

/** State of a hold after an event. A hold that ended unpaid stays unpaid, even if its charge arrives later. */
const HOLD_STATES: Partial<Record<HoldEvent['type'], HoldState>> = {
  FundsHeld: 'open',
  HoldSettled: 'charged',
  HoldReleased: 'unpaid',
  HoldExpired: 'unpaid',
  ChargeReversed: 'unpaid',
};

interface HoldStatus {
  /** Undefined if the hold was never placed. */
  readonly state: HoldState | undefined;
  /** Time of the event that caused this state; empty if there is none. */
  readonly at: string;
}

/** Loads the state of a claim's hold from the events that the payer's stream has after the claim. */
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

/** Maps every error to StoreUnavailableError: a request is not served while the owner of its key is unknown. */
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
  const message = `A request with this ${source} is in progress; retry when it has finished`;
  return new IdempotencyConflictError('idempotency_in_progress', message, source, RETRY_AFTER_SECONDS);
}

function responseLostError(source: IdempotencyKeySource): IdempotencyConflictError {
  const message = `The request with this ${source} was charged, but its response was lost; a new request is charged again`;
  return new IdempotencyConflictError('idempotency_answer_lost', message, source);
}
