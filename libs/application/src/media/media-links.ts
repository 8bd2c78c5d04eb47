export const MAX_LINK_LIFETIME_MS = 24 * 3_600_000;

/** Links that open one resource for a limited time, without a credential. */
export abstract class MediaLinks {
  /** Returns the signed URL of a stored file. @param until milliseconds since 1970; at most 24 hours from now */
  abstract createFileUrl(id: string, n: number, until: number): string;
  /** Returns the signed URL of the status of a job. */
  abstract createStatusUrl(jobId: string, until: number): string;
}
