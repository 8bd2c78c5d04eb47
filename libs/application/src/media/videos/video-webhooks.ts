/** The addresses at which vendors may say that a video is done. Each names one submission of one video, and is only told its vendor. */
import { timingSafeEqual } from 'node:crypto';
import { getSubmittedEndpoint, type SubmissionResult, type VideoRequested, type VideoState } from '#domain';
import { createRootCause, money, ZERO_USD } from '#kernel';
import type { Hold } from '../../billing/payer.ts';
import type { Clock } from '../../clock.ts';
import type { ProviderWebhook, VideoProvider } from '../../providers/media-calls.ts';
import type { ProviderRegistry } from '../../providers/provider.ts';
import type { Secrets } from '../../secrets.ts';
import type { Streams } from '../../streams.ts';

export interface WebhookSubmission {
  readonly jobId: string;
  readonly submission: number;
}

const TOKEN = /^(gen_[0-9a-f]{32})\.(\d{1,3})\.([\w-]{43})$/;

export class VideoWebhooks {
  /** @param base where we are reached from outside, without a slash at its end; undefined where we are not */
  constructor(
    private readonly base: string | undefined,
    private readonly secrets: Secrets,
  ) {}

  /** Undefined where no vendor can reach us. */
  createUrl(upstream: string, submission: WebhookSubmission): string | undefined {
    return this.base && `${this.base}/v1/videos/webhooks/${upstream}/${this.createTokens(upstream, submission)[0]}`;
  }

  /** What a token names that was given to a vendor; undefined for what was not. */
  verifyToken(upstream: string, token: string): WebhookSubmission | undefined {
    const [, jobId, number] = TOKEN.exec(token) ?? [];
    if (jobId === undefined) return undefined;
    const webhookSubmission = { jobId, submission: Number(number) };
    const providedToken = Buffer.from(token);
    const isMatch = (due: string) =>
      providedToken.length === due.length && timingSafeEqual(providedToken, Buffer.from(due));
    return this.createTokens(upstream, webhookSubmission).some(isMatch) ? webhookSubmission : undefined;
  }

  /** The one that is given away now, and those that may have been. */
  private createTokens(upstream: string, { jobId, submission }: WebhookSubmission): readonly string[] {
    const signatures = this.secrets.hashWithAllKeys(`video hook of ${upstream}: ${jobId} ${submission}`);
    return signatures.map((signature) => `${jobId}.${submission}.${signature}`);
  }
}

/** Has videos looked at of which a vendor has said something. */
export abstract class VideoPollTrigger {
  abstract wake(jobId: string): Promise<void>;
}

interface VideoWebhookReceiverDependencies {
  readonly webhooks: VideoWebhooks;
  readonly pollTrigger: VideoPollTrigger;
  readonly providers: ProviderRegistry;
  readonly videos: Streams['videos'];
  readonly clock: Clock;
}

/**
 * Takes what vendors say. It tells a video by which name its vendor has it, where that was lost, and has it looked at: what
 * became of it is asked of the vendor. So what is repeated, late, reordered or replayed changes nothing.
 */
export class VideoWebhookReceiver {
  constructor(private readonly dependencies: VideoWebhookReceiverDependencies) {}

  /** @returns whether it is one of the vendor's, at an address that it was told */
  async receive(
    upstream: string,
    token: string,
    webhook: ProviderWebhook,
    requestId: string,
  ): Promise<'unknown' | 'unsigned' | 'received'> {
    const { webhooks, pollTrigger, videos, clock } = this.dependencies;
    const webhookSubmission = webhooks.verifyToken(upstream, token);
    if (!webhookSubmission) return 'unknown';
    const { jobId, submission } = webhookSubmission;
    const video = await videos.read(jobId);
    const provider = this.findProvider(video, upstream);
    if (!provider?.parseWebhook || video.submission?.number !== submission) return 'unknown';
    const submitted = await provider.parseWebhook(webhook, getSubmittedEndpoint(video).model);
    if (!submitted) return 'unsigned';
    if (video.phase === 'submitting' || video.phase === 'unknown') {
      const result: SubmissionResult = { isAccepted: true, ...submitted, hooked: true };
      const data = { submission, outcome: { isKnown: true, result } as const, at: clock.now() };
      await videos.run(jobId, { type: 'EndSubmission', data }, createRootCause(`vendor:${upstream}`, requestId));
    }
    await pollTrigger.wake(jobId);
    return 'received';
  }

  private findProvider(video: VideoState, upstream: string): VideoProvider | undefined {
    const { request } = video;
    if (!request || getSubmittedEndpoint(video).creditor !== upstream) return undefined;
    return this.dependencies.providers.get(toHold(request.hold), upstream, 'videos');
  }
}

/** That money is held for a video: whoever asks a vendor shows it. */
export function toHold({ holdId, payer, amount }: VideoRequested['data']['hold']): Hold {
  const held = money.parseJsonAmount(amount);
  return {
    holdId,
    payer,
    amount: held,
    availableAfter: ZERO_USD,
    maxSpendable: held,
    expiresAt: Number.POSITIVE_INFINITY,
  };
}
