/** Video generation with Google's Veo: https://ai.google.dev/gemini-api/docs/video */
import {
  type SubmittedVideo,
  toBlob,
  UpstreamError,
  type VideoOrder,
  type VideoProvider,
  type VideoStatus,
} from '#application';
import { MESSAGE_CONTENT_POLICY, MESSAGE_REJECTED } from '../../http/error-rules.ts';
import { Base64File } from '../../http/json-with-files.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import { toProviderParameters } from '../provider-parameters.ts';
import { toGoogleError } from './errors.ts';

const DEFAULT_NAMES = {
  size: 'aspectRatio',
  quality: 'resolution',
  duration: 'durationSeconds',
  negative_prompt: 'negativePrompt',
};
const OPERATION = /^models\/[\w.-]{1,100}\/operations\/([\w-]{1,200})$/;
/** gRPC's `INVALID_ARGUMENT`. */
const INVALID_ARGUMENT = 3;

interface Operation {
  readonly done?: unknown;
  readonly error?: { readonly code?: unknown };
  readonly response?: { readonly generateVideoResponse?: GeneratedVideos };
}

interface GeneratedVideos {
  readonly generatedSamples?: readonly { readonly video?: { readonly uri?: unknown } }[];
  /** Why a video was withheld or not generated. */
  readonly raiMediaFilteredReasons?: readonly unknown[];
}

export class VeoVideos implements VideoProvider {
  constructor(
    private readonly http: ProviderHttp,
    private readonly headers: Readonly<Record<string, string>>,
  ) {}

  async submit({ model, prompt, image, parameters, wireMapping, signal }: VideoOrder): Promise<SubmittedVideo> {
    const bytesBase64Encoded = image && new Base64File(await toBlob(image));
    const source = image ? { image: { bytesBase64Encoded, mimeType: image.mediaType } } : {};
    const providerParameters = toProviderParameters(parameters, wireMapping, {
      defaultNames: DEFAULT_NAMES,
      bringsImage: image !== undefined,
    });
    const response = await this.http.request(`/v1beta/models/${model}:predictLongRunning`, {
      method: 'POST',
      headers: this.headers,
      body: {
        instances: [{ prompt, ...source }],
        parameters: {
          ...providerParameters,
          durationSeconds: Number(providerParameters.durationSeconds),
          sampleCount: 1,
        },
      },
      signal,
      mapErrorResponse: toGoogleError,
    });
    const { name } = ((await response.json()) ?? {}) as { readonly name?: unknown };
    const [reference, providerRequestId] = OPERATION.exec(String(name)) ?? [];
    if (reference !== undefined && providerRequestId !== undefined) return { reference, vendorId: providerRequestId };
    throw new UpstreamError('upstream_error', 'The provider did not return a reference to the result');
  }

  async getStatus(reference: string, signal: AbortSignal): Promise<VideoStatus> {
    const httpResponse = await this.http.request(`/v1beta/${reference}`, {
      method: 'GET',
      headers: this.headers,
      signal,
      mapErrorResponse: toGoogleError,
    });
    const { done, error, response } = ((await httpResponse.json()) ?? {}) as Operation;
    if (done !== true) return { state: 'pending' };
    if (error) return toFailedStatus(error);
    const { generatedSamples: samples, raiMediaFilteredReasons: reasons } = response?.generateVideoResponse ?? {};
    const uri = Array.isArray(samples) ? samples[0]?.video?.uri : undefined;
    if (typeof uri === 'string' && uri !== '') {
      const file = { kind: 'address', url: uri, headers: this.headers } as const;
      return { state: 'made', usage: undefined, vendorId: undefined, file };
    }
    const isFiltered = Array.isArray(reasons) && reasons.length > 0;
    const [code, message] = isFiltered
      ? ['content_policy_violation', MESSAGE_CONTENT_POLICY]
      : ['upstream_error', 'The provider responded without a video'];
    return { state: 'failed', code, message, invoiced: 'perhaps' };
  }
}

/** An operation that ended in an error is not billed. */
function toFailedStatus({ code }: NonNullable<Operation['error']>): VideoStatus {
  const isUpstreamError = code !== INVALID_ARGUMENT;
  return {
    state: 'failed',
    code: isUpstreamError ? 'upstream_error' : 'invalid_request',
    message: isUpstreamError ? 'The provider could not generate the video' : MESSAGE_REJECTED,
    invoiced: 'no',
  };
}
