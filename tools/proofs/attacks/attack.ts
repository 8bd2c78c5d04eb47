/** One thing that an attacker, a bad vendor or a bad night does to the built program, and what came of it. */
export interface Attack {
  /** By which it is chosen on the command line, such as `silent-connections`. */
  readonly name: string;
  /** What is done, for the table: a few words. */
  readonly description: string;
  /**
   * Does it to processes of its own, which have ended when it returns.
   * @param directory an empty one, removed afterwards
   */
  run(directory: string): Promise<Finding>;
}

export interface Finding {
  /** Whether what docs/security.md promises was kept. */
  readonly hasPassed: boolean;
  /** Figures, in one line. */
  readonly measurements: string;
}
