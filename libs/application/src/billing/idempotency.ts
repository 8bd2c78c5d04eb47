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
import { ACCOUNT, getHoldResolution } from '#domain';
import { createRootCause, type EventReader, type Runtime, StoreUnavailableError, toStreamName } from '#kernel';
import type { Clock } from '../clock.ts';
import { TooManyRequestsError } from '../rate-limiter.ts';
import type { Secrets } from '../secrets.ts';
import type { StorageQuota } from '../storage-quota.ts';
import type { CallLimits } from './billing-engine.ts';
import { loadHoldStatus } from './hold-status.ts';
import {
  type IdempotencyKeySource,
  inProgressError,
  keyReusedError,
  responseLostError,
} from './idempotency-conflict.ts';
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

/** How long a delivered response is found by requests that wait for it, which poll for it every few seconds. */
const DELIVERED_RETENTION_MS = 10_000;
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
  /**
   * Set for a request without a key of its own, of an API key with `dedupeSeconds`: how long its claim lasts. It is only
   * to share a response that exists or is being made: if there is none, the request is served as a new one.
   */
  readonly lifetimeSeconds?: number;
  /** The request has waited for the response of the one that had the key. */
  readonly hasWaited?: boolean;
}

/**
 * A request that is to be served with this payer. `complete` is called before the end of the response is sent, with the
 * response if it can be saved.
 */
export interface ClaimedRequest {
  readonly payer: Payer;
  complete(response: SavedHttpResponse | undefined): Promise<void>;
  /** Frees the key, so that the next request with it is a new one. */
  markDelivered(): Promise<void>;
}

/** The response of an earlier request with the same key. */
export type RepeatedResponse = SavedHttpResponse & Pick<ClaimedRequest, 'markDelivered'>;

export interface IdempotencyDependencies {
  readonly store: IdempotencyStore;
  readonly quota: StorageQuota;
  readonly events: EventReader;
  readonly payers: PayerFactory;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly runtime: Pick<Runtime, 'sleep' | 'reportError'>;
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
  async claim(request: IdempotentRequest, payer: Payer): Promise<ClaimedRequest | RepeatedResponse> {
    const claim = await this.claimKey(request);
    const unclaimed = { complete: async () => {}, markDelivered: async () => {} };
    if (claim === undefined) return { payer, ...unclaimed };
    if (claim === 'unknown_payer') return { payer: this.createUnknownPayer(payer), ...unclaimed };
    if ('body' in claim) return claim;
    const retryPayer = claim.isRetry ? request.createRetryPayer?.() : undefined;
    return this.createClaimedRequest(claim, retryPayer ?? payer, request);
  }

  /**
   * Does the same as `claim` for a request that creates something and holds no money. Only the response to a creation
   * is saved, so a rejected request can be retried. If the gateway dies before the response is saved, a retry may
   * create a second object.
   */
  async claimCreation(request: IdempotentRequest): Promise<Pick<ClaimedRequest, 'complete'> | RepeatedResponse> {
    const claim = await this.claimKey(request);
    if (claim === undefined || claim === 'unknown_payer') return { complete: async () => {} };
    if ('body' in claim) return claim;
    const isCreated = (response?: SavedHttpResponse) => response !== undefined && response.status < 300;
    return { complete: (response) => this.end(claim, response && isCreated(response) ? response : 'unpaid') };
  }

  /**
   * Returns the claim of a request, or the response of an earlier one; undefined if the request has no claim. Nothing is
   * stored for an unknown payer, because anyone can invent one.
   */
  private async claimKey(
    request: IdempotentRequest,
  ): Promise<OwnClaim | RepeatedResponse | 'unknown_payer' | undefined> {
    const { events, store, secrets, clock } = this.dependencies;
    const { payer, lifetimeSeconds } = request;
    const head = await events.readHead(payer);
    if (head === undefined) return 'unknown_payer';
    const digest = await secrets.hashContentWithOldestKey('idempotent request ', request.fingerprint);
    const claim: OwnClaim = {
      payer,
      // Keyed hashes: neither text is stored, and neither can be guessed from its hash.
      key: secrets.hashWithOldestKey(
        lifetimeSeconds === undefined ? `idempotency key ${request.key}` : `request ${request.key} ${digest}`,
      ),
      request: digest,
      requestId: request.requestId,
      revision: head.revision,
      owner: request.requestId,
      isRetry: false,
      ...(lifetimeSeconds === undefined ? {} : { lifetimeSeconds, endsAtMs: clock.nowMs() + lifetimeSeconds * 1_000 }),
    };
    if (request.hasWaited) {
      const response = await this.findResponse(claim, request);
      if (response) return response;
    }
    const stored = await mapStoreErrors(store.claim(claim));
    if (stored !== undefined) return this.ensureQuota(claim, stored);
    await request.assertCredentialValid();
    return this.replayOrTakeOver(claim, request);
  }

  /**
   * Returns the claim if the payer has not used up its quota. Otherwise ends the claim and throws, because a client
   * that sends a key relies on the saved response. Returns undefined for a request without a key of its own.
   * @throws TooManyRequestsError if the account has used up its storage quota
   */
  private async ensureQuota(claim: OwnClaim, stored: number): Promise<OwnClaim | undefined> {
    const { store, quota } = this.dependencies;
    if (stored < quota.minBytes || !claim.payer.startsWith(ACCOUNTS)) return claim;
    if (stored < (await quota.loadMaxBytes(claim.payer.slice(ACCOUNTS.length)))) return claim;
    await mapStoreErrors(store.end(claim, 'unpaid'));
    if (claim.lifetimeSeconds !== undefined) return undefined;
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
      this.dependencies.runtime.reportError('the claim of an idempotency key could not be ended', error);
    }
  }

  /**
   * Returns the response of an earlier request with the same key, or the claim if this request has taken over the key.
   * @throws IdempotencyConflictError, StoreUnavailableError
   */
  private async replayOrTakeOver(claim: OwnClaim, request: IdempotentRequest): Promise<RepeatedResponse | OwnClaim> {
    const { store } = this.dependencies;
    const { source, recoverResponse, createRetryPayer } = request;
    const existing = await mapStoreErrors(store.find(claim));
    if (!existing) throw inProgressError(source); // the earlier request has just ended without a charge
    if (existing.request !== claim.request) throw keyReusedError(source);
    const saved = existing.sealedResponse && (await store.open(existing.sealedResponse));
    const markDelivered = () => this.markDelivered(existing);
    if (saved) return { ...saved, markDelivered };
    const recovered = existing.hasHold ? await recoverResponse?.(existing.requestId) : undefined;
    if (recovered) return { ...recovered, markDelivered };
    if (existing.isLost || existing.sealedResponse) return this.rejectLost(existing, request);
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
  private async checkCharged(existing: ExistingClaim, request: IdempotentRequest): Promise<boolean> {
    const { source, createRetryPayer } = request;
    const { payers, events, store } = this.dependencies;
    await payers.endOverdueHolds(existing.payer, createRootCause('gateway', existing.requestId));
    const { state } = await loadHoldStatus(existing, events);
    if (state === 'charged' && !createRetryPayer) {
      await mapStoreErrors(store.end(existing, 'lost'));
      return this.rejectLost(existing, request);
    }
    if (state !== 'unpaid' && state !== 'charged') throw inProgressError(source);
    return state === 'charged';
  }

  /** Returns the saved response of the request that has the key, or had it until its response was delivered. */
  private async findResponse(claim: OwnClaim, request: IdempotentRequest): Promise<RepeatedResponse | undefined> {
    const { store } = this.dependencies;
    const existing = await mapStoreErrors(store.find(claim));
    const saved = existing?.sealedResponse && (await store.open(existing.sealedResponse));
    if (!existing || !saved) return undefined;
    await request.assertCredentialValid();
    return { ...saved, markDelivered: () => this.markDelivered(existing) };
  }

  /** Frees a key whose response was delivered, and later removes the response, for which other requests may wait. */
  private async markDelivered(claim: IdempotencyClaim): Promise<void> {
    await this.end(claim, 'delivered');
    // If this fails, or the process ends before, the response is removed with those that have expired.
    const { store, runtime } = this.dependencies;
    const remove = () => store.end(claim, 'unpaid');
    void runtime
      .sleep(DELIVERED_RETENTION_MS, { isBackground: true })
      .then(remove)
      .catch(() => {});
  }

  /** A request without a key of its own can be served again: it finds its key free at the next attempt. */
  private async rejectLost(
    existing: ExistingClaim,
    { source, lifetimeSeconds }: Pick<IdempotentRequest, 'source' | 'lifetimeSeconds'>,
  ): Promise<never> {
    if (lifetimeSeconds === undefined) throw responseLostError(source);
    await mapStoreErrors(this.dependencies.store.end(existing, 'unpaid'));
    throw inProgressError(source);
  }

  /**
   * The hold of an unknown payer is rejected. If it is placed after all, the payer has just been created, or the event
   * store had returned outdated data: then the request is not served, because other requests may have the same key.
   */
  private createUnknownPayer(payer: Payer): Payer {
    const confirm = async () => {
      throw new StoreUnavailableError('the owner of an idempotency key was unknown');
    };
    return new IdempotentPayer(payer, { confirm, renew: async () => {} }, this.dependencies.runtime);
  }

  private createClaimedRequest(
    claim: OwnClaim,
    payer: Payer,
    { source }: Pick<IdempotentRequest, 'source'>,
  ): ClaimedRequest {
    const { store, clock, runtime } = this.dependencies;
    // Another request is served instead if this one was considered dead while its money was being held.
    const confirm = async () => {
      if (await mapStoreErrors(store.confirm(claim))) return;
      // Once the claim has ended, an identical request is another one.
      if (clock.nowMs() < (claim.endsAtMs ?? Number.POSITIVE_INFINITY)) throw inProgressError(source);
    };
    const claimed = new IdempotentPayer(payer, { confirm, renew: () => store.renew(claim) }, runtime);
    const complete = (response: SavedHttpResponse | undefined) => {
      if (claimed.chargeState === 'charged') return this.end(claim, response ?? 'lost');
      return this.end(claim, claimed.chargeState === 'open' ? 'unknown' : 'unpaid');
    };
    return { payer: claimed, complete, markDelivered: () => this.markDelivered(claim) };
  }
}

/** A claim that this process owns. */
interface OwnClaim extends IdempotencyClaim {
  /** The request was charged before, and its response was lost. */
  readonly isRetry: boolean;
  /** Milliseconds since 1970; undefined for a claim that lasts longer than its request. */
  readonly endsAtMs?: number;
}

/** Maps every error to StoreUnavailableError: a request is not served while the owner of its key is unknown. */
async function mapStoreErrors<T>(result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (cause) {
    throw new StoreUnavailableError('idempotency keys cannot be looked up', { cause });
  }
}
