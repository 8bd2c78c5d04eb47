/** The claim of a request on its idempotency key. */
export interface IdempotencyClaim {
  /** Name of the payer's stream. */
  readonly payer: string;
  readonly key: string;
  /** Digest of path and body. Only a request with the same digest gets the same response. */
  readonly request: string;
  readonly requestId: string;
  /** Revision of the payer's stream before the hold was placed. */
  readonly revision: number;
  /** Id of the request that may change the claim. */
  readonly owner: string;
  /** After this time from the claim, the key is free, whatever has become of the request; 24 hours if undefined. */
  readonly lifetimeSeconds?: number;
}

/** The claim of an earlier request with the same key. */
export interface ExistingClaim extends IdempotencyClaim {
  /** The lease of the claim has not ended: its gateway may still be serving the request. */
  readonly isRunning: boolean;
  /**
   * The claim was confirmed: money was held and a provider may have been called. The payer's events show what became of
   * the hold.
   */
  readonly hasHold: boolean;
  /** The request was charged, but no response was saved. */
  readonly isLost: boolean;
  /** Compressed and sealed. */
  readonly sealedResponse: Buffer | null;
}

export interface SavedHttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Without the base64 text of `images`: the value of each `b64_json` is empty instead. */
  readonly body: Buffer;
  /** The images of the response in their order, if it is too long to be saved with them. */
  readonly images?: readonly { readonly id: string; readonly n: number }[];
  /** The connection was closed before the end of the response, and is closed there again for repeats. */
  readonly isIncomplete?: boolean;
}

/**
 * How a claim ends:
 * - a response: repeated requests get it
 * - `lost`: the request was charged, but there is no response to replay
 * - `unknown`: it is unknown whether the request was charged; the next request finds out
 * - `unpaid`: the request was not charged; the next one is served as if it were the first
 * - `delivered`: the key is free; a request that waits for the response still finds it, until another one has the key
 */
export type ClaimOutcome = SavedHttpResponse | 'lost' | 'unknown' | 'unpaid' | 'delivered';

/**
 * Stores claims on idempotency keys and the responses to their requests. The store decides which response a repeated
 * request gets, never what may be charged. A change succeeds only while the claim still has the given owner: a request
 * whose claim was taken over changes nothing and gets `false`.
 */
export abstract class IdempotencyStore {
  /**
   * Claims a key unless another request has it. Of several simultaneous claims, on any number of gateways, one
   * succeeds.
   * @returns the number of bytes stored for the payer; undefined if another request has the key
   */
  abstract claim(claim: IdempotencyClaim): Promise<number | undefined>;

  abstract find(claim: IdempotencyClaim): Promise<ExistingClaim | undefined>;

  /**
   * Takes over the key of a request whose lease has ended, if its claim still has the owner and the `hasHold` that were
   * read, and its response was neither saved nor lost. Of several simultaneous attempts at most one succeeds.
   */
  abstract takeOver(existing: ExistingClaim, claim: IdempotencyClaim): Promise<boolean>;

  /**
   * Extends the lease of a claim whose request still waits for money.
   * @returns false if another request has taken over the key, or the claim is confirmed
   */
  abstract renew(claim: IdempotencyClaim): Promise<boolean>;

  /**
   * Records that money is held, so that a provider may be called. From now on the claim lasts about as long as the
   * hold.
   * @returns false if another request has taken over the key
   */
  abstract confirm(claim: IdempotencyClaim): Promise<boolean>;

  /**
   * Ends a claim.
   * @param maxBytes maximum total of bytes stored for the payer; a response that would exceed it is not saved, and is
   *   lost
   * @returns false if the claim has another owner, or the response was not saved
   */
  abstract end(claim: IdempotencyClaim, outcome: ClaimOutcome, maxBytes?: number): Promise<boolean>;

  /**
   * Returns a response with its images.
   * @returns undefined if an image no longer exists
   * @throws Error if the response was sealed with a master key that is not in the key ring, or was changed;
   *   FileStoreUnavailableError
   */
  abstract open(sealedResponse: Buffer): Promise<Omit<SavedHttpResponse, 'images'> | undefined>;
}
