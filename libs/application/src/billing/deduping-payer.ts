import type { Charge } from '#domain';
import { Rejection, type Runtime, retry, ZERO_USD } from '#kernel';
import { createDisconnectError, toUpstreamError } from '../errors.ts';
import type { ClaimedRequest, IdempotentRequest, RepeatedResponse } from './idempotency.ts';
import { IdempotencyConflictError } from './idempotency-conflict.ts';
import {
  type Hold,
  type HoldExtensionRequest,
  type HoldRelease,
  type HoldRequest,
  type Payer,
  PayerDecorator,
  type SettleOptions,
} from './payer.ts';

/** Delays between the attempts of a repeat to get the response that it waits for. */
const WAIT = { minMs: 250, maxMs: 2_000 };
/** The setting can change again while a request holds money; more changes are no coincidence. */
const MAX_CHANGES = 3;

/** Thrown instead of holding money: the request is a repeat, and this is its response. */
export class RepeatedRequestError extends Error {
  override readonly name = 'RepeatedRequestError';

  constructor(readonly response: RepeatedResponse) {
    super('the request is a repeat of another one');
  }
}

/** The `dedupeSeconds` of an API key as this process knows it; null: off. */
export interface KnownDedupeSetting {
  get(): number | null;
  set(seconds: number | null): void;
}

/** Claims the content of a request. @throws errors of `IdempotencyService.claim` */
export type ClaimContent = (
  request: HoldRequest,
  claim: Pick<IdempotentRequest, 'hasWaited'> & { readonly lifetimeSeconds: number },
  payer: Payer,
) => Promise<ClaimedRequest | RepeatedResponse>;

/**
 * Pays for a request of an API key that may have `dedupeSeconds`. The setting is part of the account's state, so the
 * command that holds money finds out whether this process knows it: no request without the setting costs a query more,
 * and a change applies to the next request on every gateway. With the setting, the content of the request is claimed
 * like an idempotency key before money is held. A repeat waits for the response of the first request.
 */
export class DedupingPayer extends PayerDecorator {
  private claimed: Payer | undefined;

  constructor(
    payer: Payer,
    private readonly setting: KnownDedupeSetting,
    private readonly claimContent: ClaimContent,
    private readonly runtime: Pick<Runtime, 'sleep' | 'chance'>,
  ) {
    super(payer);
  }

  /** @throws RepeatedRequestError if the request is a repeat; errors of `ClaimContent` and of the payer */
  async hold(request: HoldRequest): Promise<Hold> {
    for (let changes = 0; ; changes++) {
      try {
        return await this.tryHold(request, this.setting.get());
      } catch (error) {
        const current = getChangedSetting(error);
        if (current === undefined || changes >= MAX_CHANGES) throw error;
        this.setting.set(current);
      }
    }
  }

  private async tryHold(request: HoldRequest, dedupeSeconds: number | null): Promise<Hold> {
    const dependent = { ...request, dedupeSeconds };
    if (dedupeSeconds !== null) this.claimed ??= await this.claim(dependent, dedupeSeconds);
    return this.current.hold(dependent);
  }

  /** Claims the content of the request, or waits for the response of the request that has claimed it. */
  private claim(request: HoldRequest, lifetimeSeconds: number): Promise<Payer> {
    const tryToClaim = async (failures: number) => {
      const claimed = await this.claimContent(request, { lifetimeSeconds, hasWaited: failures > 0 }, this.payer);
      if ('payer' in claimed) return claimed.payer;
      await this.assertSettingKnown(request);
      throw new RepeatedRequestError(claimed);
    };
    return retry(tryToClaim, {
      ...WAIT,
      chance: this.runtime.chance,
      sleep: (waitMs) => waitForRetry(this.runtime, waitMs, request),
      shouldRetry: (error) => error instanceof IdempotencyConflictError && error.type === 'idempotency_in_progress',
    });
  }

  /** A repeat holds no money, so it has to check whether the setting still applies. Any other rejection is ignored. */
  private async assertSettingKnown(request: HoldRequest): Promise<void> {
    const freeRequest = { ...request, minAmount: ZERO_USD, maxAmount: ZERO_USD, partial: undefined };
    await this.payer.assertAffordable(freeRequest).catch((error) => {
      if (!(error instanceof Rejection) || getChangedSetting(error) !== undefined) throw error;
    });
  }

  override extend(hold: Hold, extension: HoldExtensionRequest) {
    return this.current.extend(hold, extension);
  }

  override settle(hold: Hold, charge: Charge, options: SettleOptions) {
    return this.current.settle(hold, charge, options);
  }

  override release(hold: Hold, details: HoldRelease): Promise<void> {
    return this.current.release(hold, details);
  }

  private get current(): Payer {
    return this.claimed ?? this.payer;
  }
}

/** Returns the setting of which a process knew an outdated value; undefined for any other error. */
function getChangedSetting(error: unknown): number | null | undefined {
  if (!(error instanceof Rejection && error.code === 'dedupe_changed')) return undefined;
  return JSON.parse(error.details.dedupe_seconds ?? 'null');
}

/** @throws UpstreamError if the request ends before */
async function waitForRetry(
  { sleep }: Pick<Runtime, 'sleep'>,
  waitMs: number,
  { signal, disconnected }: HoldRequest,
): Promise<void> {
  const waiting = new AbortController();
  const signals = signal ? [signal, waiting.signal] : [waiting.signal];
  const isDisconnected = disconnected?.then(() => true);
  const timer = sleep(waitMs, { signal: AbortSignal.any(signals) }).then(() => false);
  try {
    if (await (isDisconnected ? Promise.race([timer, isDisconnected]) : timer)) throw createDisconnectError();
    if (signal?.aborted) throw toUpstreamError(signal.reason);
  } finally {
    waiting.abort();
  }
}
