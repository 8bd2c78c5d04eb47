/** The longest that a signed address is good for. */
export const MAX_LINK_LIFETIME_MS = 24 * 3_600_000;

/** Addresses that open one thing for a while, without a credential. */
export abstract class MediaLinks {
  /** The signed address of a kept file. @param until milliseconds since 1970; never more than 24 hours ahead */
  abstract createFileUrl(id: string, n: number, until: number): string;
  /** The signed address under which the status of a job can be asked for. */
  abstract createStatusUrl(jobId: string, until: number): string;
}
