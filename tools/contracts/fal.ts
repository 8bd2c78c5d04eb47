/**
 * fal's queue and the models that the catalogue and the sandbox have, by the types of its SDK. A message is named by
 * the path of its request: `fal-ai/veo3/fastRequest` is an input, and `fal-ai/veo3/requestsResponse` is a result, whose
 * path has only the owner and the application of the model.
 */
import type { InQueueQueueStatus, QueueStatus, ValidationErrorInfo } from '@fal-ai/client';
import type { EndpointTypeMap } from '@fal-ai/client/endpoints';

type Model = keyof EndpointTypeMap &
  (
    | 'fal-ai/bria/background/remove'
    | `fal-ai/bytedance/seedream/v4.5/${'text-to-image' | 'edit'}`
    | 'fal-ai/flux-pro/kontext'
    | 'fal-ai/ideogram/v3'
    | 'fal-ai/imagen4/preview'
    | `fal-ai/kling-video/v2.5-turbo/pro/${'text' | 'image'}-to-video`
    | `fal-ai/nano-banana${'' | '-2' | '-pro'}${'' | '/edit'}`
    | 'fal-ai/pixverse/v5/text-to-video'
    | 'fal-ai/qwen-image'
    | 'fal-ai/recraft/upscale/crisp'
    | 'fal-ai/recraft/v3/text-to-image'
    | 'fal-ai/sora-2/image-to-video'
    | `fal-ai/sora-2/text-to-video${'' | '/pro'}`
    | `fal-ai/veo3${'' | '.1'}${'' | '/fast'}${'' | '/image-to-video'}`
    | `fal-ai/wan-25-preview/${'text' | 'image'}-to-video`
  );

type ApplicationOf<Name extends string> = Name extends `${infer Owner}/${infer Application}/${string}`
  ? `${Owner}/${Application}`
  : Name;

/** The gateway that accepted a request: https://docs.fal.ai/model-apis/model-endpoints/webhooks */
interface Accepted {
  gateway_request_id?: string;
}

/** The SDK lacks the failure of a request: https://docs.fal.ai/model-apis/model-endpoints/queue */
interface Failure {
  error?: string;
  error_type?: string;
}

export type FalContracts = { [Name in Model as `${Name}Query`]: { fal_webhook?: string } } & {
  [Name in Model as `${Name}Request`]: EndpointTypeMap[Name]['input'];
} & { [Name in Model as `${Name}Response`]: InQueueQueueStatus & Accepted } & {
  [Application in ApplicationOf<Model> as `${Application}/requestsResponse`]: {
    [Name in Model]: ApplicationOf<Name> extends Application ? EndpointTypeMap[Name]['output'] : never;
  }[Model];
} & {
  statusQuery: { logs?: 1 };
  statusResponse: QueueStatus & Failure;
  cancelResponse: { status: 'CANCELLATION_REQUESTED' };
  error: FalError;
};

/** https://docs.fal.ai/model-apis/errors; a request that has ended cannot be cancelled. */
export type FalError =
  | { detail: string; error_type?: string }
  | { detail: (ValidationErrorInfo & { url?: string; ctx?: Record<string, unknown>; input?: unknown })[] }
  | { status: 'ALREADY_COMPLETED' };
