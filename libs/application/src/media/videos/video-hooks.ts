/** The addresses at which vendors may say that a video is done. Each names one submission of one video, and is only told its vendor. */
import { timingSafeEqual } from 'node:crypto';
import type { Secrets } from '../../secrets.ts';

export interface HookedSubmission {
  readonly jobId: string;
  readonly submission: number;
}

const TOKEN = /^(gen_[0-9a-f]{32})\.(\d{1,3})\.([\w-]{43})$/;

export class VideoHooks {
  /** @param base where we are reached from outside, without a slash at its end; undefined where we are not */
  constructor(
    private readonly base: string | undefined,
    private readonly secrets: Secrets,
  ) {}

  /** Undefined where no vendor can reach us. */
  addressOf(upstream: string, submission: HookedSubmission): string | undefined {
    return this.base && `${this.base}/v1/videos/webhooks/${upstream}/${this.tokenOf(upstream, submission)}`;
  }

  /** What a token names that was given to a vendor; undefined for what was not. */
  read(upstream: string, token: string): HookedSubmission | undefined {
    const [, jobId, number] = TOKEN.exec(token) ?? [];
    if (jobId === undefined) return undefined;
    const named = { jobId, submission: Number(number) };
    const [given, due] = [Buffer.from(token), Buffer.from(this.tokenOf(upstream, named))];
    return given.length === due.length && timingSafeEqual(given, due) ? named : undefined;
  }

  private tokenOf(upstream: string, { jobId, submission }: HookedSubmission): string {
    const signature = this.secrets.hash(`video hook of ${upstream}: ${jobId} ${submission}`);
    return `${jobId}.${submission}.${signature}`;
  }
}

/** Has videos looked at of which a vendor has said something. */
export abstract class VideoHints {
  abstract wake(jobId: string): Promise<void>;
}
