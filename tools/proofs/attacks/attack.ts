/** One attack or failure that is tested against the build. */
export interface Attack {
  /** Selects the attack on the command line, such as `held-connections`. */
  readonly name: string;
  /** A short description of the attack, for the table of results. */
  readonly description: string;
  /**
   * Runs the attack. If it starts processes, it ends them before it returns.
   * @param directory an empty directory, which the caller removes afterwards
   */
  run(directory: string): Promise<Finding>;
}

export interface Finding {
  /** Whether the guarantee in docs/security.md was met. */
  readonly hasPassed: boolean;
  /** The measured values, in one line. */
  readonly measurements: string;
}
