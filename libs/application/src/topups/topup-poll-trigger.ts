/** What top-ups are looked at for without delay. */
export abstract class TopupPollTrigger {
  /**
   * Has the top-ups looked at that a back end knows by these references. Others are none of ours.
   * @throws when that is not known yet of one of them
   */
  abstract wake(backend: string, references: readonly string[]): Promise<void>;
}
