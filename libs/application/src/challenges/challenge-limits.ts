/** Bounds how many payment challenges are issued: each is a fact and an invoice of a Lightning node, and asking is free. */
export abstract class ChallengeLimits {
  /**
   * Counts a request of an address that shows no valid proof, before anything of it is read.
   * @throws TooManyChallenges; StoreUnavailable when it cannot be counted
   */
  abstract ask(address: string): Promise<void>;

  /** Counts a challenge that is about to be issued, of all together. @throws as above */
  abstract issue(): Promise<void>;
}

/** More are asked for than are issued. */
export class TooManyChallenges extends Error {
  override readonly name = 'TooManyChallenges';

  constructor(
    message: string,
    readonly retryAfterSeconds: number,
  ) {
    super(message);
  }
}
