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
  addressOf(upstream: string, submission: WebhookSubmission): string | undefined {
    return this.base && `${this.base}/v1/videos/webhooks/${upstream}/${this.tokensOf(upstream, submission)[0]}`;
  }

  /** What a token names that was given to a vendor; undefined for what was not. */
  read(upstream: string, token: string): WebhookSubmission | undefined {
    const [, jobId, number] = TOKEN.exec(token) ?? [];
    if (jobId === undefined) return undefined;
    const named = { jobId, submission: Number(number) };
    const given = Buffer.from(token);
    const isDue = (due: string) => given.length === due.length && timingSafeEqual(given, Buffer.from(due));
    return this.tokensOf(upstream, named).some(isDue) ? named : undefined;
  }

  /** The one that is given away now, and those that may have been. */
  private tokensOf(upstream: string, { jobId, submission }: WebhookSubmission): readonly string[] {
    const signatures = this.secrets.hashes(`video hook of ${upstream}: ${jobId} ${submission}`);
    return signatures.map((signature) => `${jobId}.${submission}.${signature}`);
  }
}

/** Has videos looked at of which a vendor has said something. */
export abstract class VideoPollTrigger {
  abstract wake(jobId: string): Promise<void>;
}

interface Ports {
  readonly hooks: VideoWebhooks;
  readonly hints: VideoPollTrigger;
  readonly providers: ProviderRegistry;
  readonly videos: Streams['videos'];
  readonly clock: Clock;
}

/**
 * Takes what vendors say. It tells a video by which name its vendor has it, where that was lost, and has it looked at: what
 * became of it is asked of the vendor. So what is repeated, late, reordered or replayed changes nothing.
 */
export class VideoWebhookReceiver {
  constructor(private readonly ports: Ports) {}

  /** @returns whether it is one of the vendor's, at an address that it was told */
  async receive(
    upstream: string,
    token: string,
    hook: ProviderWebhook,
    requestId: string,
  ): Promise<'unknown' | 'unsigned' | 'received'> {
    const { hooks, hints, videos, clock } = this.ports;
    const named = hooks.read(upstream, token);
    if (!named) return 'unknown';
    const { jobId, submission } = named;
    const video = await videos.read(jobId);
    const maker = this.makerOf(video, upstream);
    if (!maker?.notified || video.submission?.number !== submission) return 'unknown';
    const told = await maker.notified(hook, getSubmittedEndpoint(video).model);
    if (!told) return 'unsigned';
    if (video.phase === 'submitting' || video.phase === 'unknown') {
      const answer: SubmissionResult = { isAccepted: true, ...told, hooked: true };
      const data = { submission, outcome: { isKnown: true, result: answer } as const, at: clock.now() };
      await videos.run(jobId, { type: 'EndSubmission', data }, createRootCause(`vendor:${upstream}`, requestId));
    }
    await hints.wake(jobId);
    return 'received';
  }

  private makerOf(video: VideoState, upstream: string): VideoProvider | undefined {
    const { request } = video;
    if (!request || getSubmittedEndpoint(video).creditor !== upstream) return undefined;
    return this.ports.providers.of(toHold(request.hold), upstream, 'videos');
  }
}

/** That money is held for a video: whoever asks a vendor shows it. */
export function toHold({ holdId, payer, amount }: VideoRequested['data']['hold']): Hold {
  const held = money.parseJsonAmount(amount);
  return { holdId, payer, amount: held, beside: ZERO_USD, reach: held, expiresAt: Number.POSITIVE_INFINITY };
}
