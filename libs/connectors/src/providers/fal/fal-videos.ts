/** Video generation through fal's queue: https://docs.fal.ai/model-apis */
import {
  type ProviderWebhook,
  type SubmittedVideo,
  toBlob,
  toUpstreamError,
  type VideoOrder,
  type VideoProvider,
  type VideoStatus,
} from '#application';
import { Base64File } from '../../http/json-with-files.ts';
import { toProviderParameters } from '../provider-parameters.ts';
import type { FalQueue } from './queue.ts';
import type { FalWebhookVerifier } from './webhooks.ts';

const DEFAULT_NAMES = { size: 'aspect_ratio', quality: 'resolution' };
/** Statuses that describe the video request itself and not the poll. */
const TERMINAL_STATUSES: ReadonlySet<number | undefined> = new Set([400, 422, 500]);
const REQUEST_ID = /^[\w-]{1,100}$/;

export class FalVideos implements VideoProvider {
  constructor(
    private readonly queue: FalQueue,
    private readonly webhooks: FalWebhookVerifier,
  ) {}

  async submit({
    model,
    prompt,
    image,
    parameters,
    wireMapping,
    webhookUrl,
    signal,
  }: VideoOrder): Promise<SubmittedVideo> {
    const source = image && new Base64File(await toBlob(image), `data:${image.mediaType};base64,`);
    const input = {
      prompt,
      ...toProviderParameters(parameters, wireMapping, {
        defaultNames: DEFAULT_NAMES,
        bringsImage: image !== undefined,
      }),
      ...(source === undefined ? {} : { image_url: source }),
    };
    const { requestId, statusUrl, responseUrl } = await this.queue.submit(model, input, {
      signal,
      hookUrl: webhookUrl,
    });
    return { reference: `${statusUrl} ${responseUrl}`, vendorId: requestId };
  }

  async getStatus(reference: string, signal: AbortSignal): Promise<VideoStatus> {
    const [statusUrl = '', responseUrl = ''] = reference.split(' ');
    if ((await this.queue.fetchState({ statusUrl }, signal)) !== 'ended') return { state: 'pending' };
    try {
      return toVideoStatus(await this.queue.fetchResult({ responseUrl }, signal));
    } catch (error) {
      const failure = toUpstreamError(error);
      if (!TERMINAL_STATUSES.has(failure.status)) throw error;
      // Failed requests are not billed. fal does not document whether it bills a video that it generated and withheld.
      const invoiced = failure.code === 'content_policy_violation' ? 'perhaps' : 'no';
      return { state: 'failed', code: failure.code, message: failure.message, invoiced };
    }
  }

  /** Of the model's name, the queue's URLs contain only the first two segments: the application. */
  async parseWebhook(webhook: ProviderWebhook, model: string): Promise<SubmittedVideo | undefined> {
    if (!(await this.webhooks.verifySignature(webhook))) return undefined;
    const requestId = parseRequestId(webhook.body);
    if (requestId === undefined) return undefined;
    const requestPath = `/${model.split('/').slice(0, 2).join('/')}/requests/${requestId}`;
    return { reference: `${requestPath}/status ${requestPath}`, vendorId: requestId };
  }
}

function toVideoStatus(result: unknown): VideoStatus {
  const { video } = (result ?? {}) as { readonly video?: { readonly url?: unknown } | null };
  const url = video?.url;
  if (typeof url === 'string' && url !== '')
    return { state: 'made', usage: undefined, vendorId: undefined, file: { kind: 'address', url } };
  const message = 'The provider responded without a video';
  return { state: 'failed', code: 'upstream_error', message, invoiced: 'perhaps' };
}

function parseRequestId(body: Uint8Array): string | undefined {
  try {
    const { request_id: id } = JSON.parse(Buffer.from(body).toString()) as { readonly request_id?: unknown };
    return typeof id === 'string' && REQUEST_ID.test(id) ? id : undefined;
  } catch {
    return undefined; // invalid JSON
  }
}
