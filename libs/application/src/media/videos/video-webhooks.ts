/**
 * Webhook URLs at which providers report that a video is ready. Each identifies one submission of one video, and only
 * the provider of the submission receives it.
 */
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
  /**
   * @param base the public URL of the gateway, without a trailing slash; undefined if providers cannot reach the
   *   gateway
   */
  constructor(
    private readonly base: string | undefined,
    private readonly secrets: Secrets,
  ) {}

  /** @returns undefined if providers cannot reach the gateway */
  createUrl(upstream: string, submission: WebhookSubmission): string | undefined {
    return this.base && `${this.base}/v1/videos/webhooks/${upstream}/${this.createTokens(upstream, submission)[0]}`;
  }

  /** Returns the submission of a token that was issued to a provider; undefined for any other token. */
  verifyToken(upstream: string, token: string): WebhookSubmission | undefined {
    const [, jobId, number] = TOKEN.exec(token) ?? [];
    if (jobId === undefined) return undefined;
    const webhookSubmission = { jobId, submission: Number(number) };
    const providedToken = Buffer.from(token);
    const isMatch = (due: string) =>
      providedToken.length === due.length && timingSafeEqual(providedToken, Buffer.from(due));
    return this.createTokens(upstream, webhookSubmission).some(isMatch) ? webhookSubmission : undefined;
  }

  /** Returns the token that is issued now, and those that may have been issued under other keys. */
  private createTokens(upstream: string, { jobId, submission }: WebhookSubmission): readonly string[] {
    const signatures = this.secrets.hashWithAllKeys(`video hook of ${upstream}: ${jobId} ${submission}`);
    return signatures.map((signature) => `${jobId}.${submission}.${signature}`);
  }
}

/** Triggers a poll of a video after its provider has sent a webhook. */
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
 * Receives the webhooks of providers. A webhook provides the provider's id of a video, if the response to its
 * submission has not arrived or was lost, and triggers a poll. The state of the video is not taken from the webhook,
 * but requested from the provider. So repeated, delayed, reordered or replayed webhooks do no harm.
 */
export class VideoWebhookReceiver {
  constructor(private readonly dependencies: VideoWebhookReceiverDependencies) {}

  /**
   * @returns `unknown` for a URL that was not issued for the current submission; `unsigned` if the provider's signature
   *   is missing or invalid, or the webhook reports nothing
   * @throws UpstreamError if the provider is not available here
   */
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

/** Returns the evidence that money is held for a video, which every call to its provider requires. */
export function toHold({ holdId, payer, amount }: VideoRequested['data']['hold']): Hold {
  const held = money.parseJsonAmount(amount);
  return {
    holdId,
    payer,
    amount: held,
    availableAfter: ZERO_USD,
    expiresAt: Number.POSITIVE_INFINITY,
  };
}
