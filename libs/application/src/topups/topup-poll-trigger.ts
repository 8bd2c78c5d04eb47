/** Triggers polls of top-ups without delay. */
export abstract class TopupPollTrigger {
  /**
   * Triggers a poll of the top-ups that have these references at a payment backend. Unknown references are ignored.
   * @throws Error if it is not known yet whether one of them belongs to a top-up
   */
  abstract wake(backend: string, references: readonly string[]): Promise<void>;
}
