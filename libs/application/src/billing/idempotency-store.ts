/** Whose key it is: the request's with this key that runs now. */
export interface IdempotencyClaim {
  /** The name of the payer's stream. */
  readonly payer: string;
  readonly key: string;
  /** The path and the body: what must be the same for the answer to be the same. */
  readonly request: string;
  readonly requestId: string;
  /** Of that stream, before there was a hold. */
  readonly revision: number;
  readonly owner: string;
}

/** An earlier request with the same key. */
export interface ExistingClaim extends IdempotencyClaim {
  /** Its gateway may still be at it. */
  readonly isRunning: boolean;
  /** Its hold was made, and its upstream may have been called: its payer's facts say what became of it. */
  readonly hasHold: boolean;
  /** It was charged, and there is nothing to replay. */
  readonly isLost: boolean;
  /** Sealed. */
  readonly sealedResponse: Buffer | null;
}

export interface SavedHttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

/**
 * How a claim ends: with an answer for the next request; charged, with nothing to replay; not knowing whether it was
 * charged, which the next request finds out; or without a charge, so that the next request is served as the first.
 */
export type ClaimOutcome = SavedHttpResponse | 'lost' | 'unknown' | 'unpaid';

/**
 * Claims of idempotency keys, and the answers to requests that had one. It says what was answered, never what may be
 * charged. Only its owner changes a claim: a request that was taken for dead changes nothing, and gets false.
 */
export abstract class IdempotencyStore {
  /**
   * Takes a key, if no other request has it. Of any number at once, on any gateway, one does.
   * @returns bytes that are stored for its payer; undefined where another request has the key
   */
  abstract claim(claim: IdempotencyClaim): Promise<number | undefined>;

  abstract find(claim: IdempotencyClaim): Promise<ExistingClaim | undefined>;

  /** Takes the key of a request that does not run any more, and is as it was found. Of any number at once, one does. */
  abstract takeOver(existing: ExistingClaim, claim: IdempotencyClaim): Promise<boolean>;

  /**
   * States that the money is held, so that the upstream may be called. From now on the claim is respected for as long as
   * its hold.
   * @returns false when another request has the key meanwhile
   */
  abstract confirm(claim: IdempotencyClaim): Promise<boolean>;

  /** @param maxBytes bytes that its payer may have stored then: beyond them an answer is not kept, and is lost */
  abstract end(claim: IdempotencyClaim, outcome: ClaimOutcome, maxBytes?: number): Promise<boolean>;

  /** @throws Error when it was sealed with another master key */
  abstract open(sealedResponse: Buffer): Promise<SavedHttpResponse>;
}
