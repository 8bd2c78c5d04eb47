/** Calls to providers of images, videos and audio, and their responses. */
import type { WireMapping } from '#catalogue';
import type { PriceTerms, ProviderInvoiceExpectation, Usage } from '#domain';

/** An image in a request, or a mask for one. */
export interface SourceImage {
  /** Detected from the content, such as `image/png`. */
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** Parameters of the result under our names. A call has only those that its endpoint supports. */
export type MediaParameters = Readonly<Record<string, string | number | boolean>>;

/** A generated file: its bytes, or the URL from which the provider serves it. */
export type GeneratedFile =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'address'; readonly url: string; readonly headers?: Readonly<Record<string, string>> };

/** What a provider reports about a call in addition to its result. */
export interface GenerationUsage {
  /** Units that the provider counts and reports, such as tokens; undefined if it reports nothing. */
  readonly usage: Usage | undefined;
  /** The terms that determined the price, if the response reports terms that differ from the request. */
  readonly terms?: PriceTerms;
  /** The provider's id of its response, which identifies the line of its invoice. */
  readonly vendorId: string | undefined;
}

export type { WireMapping };

export interface ImageCall {
  /** The provider's name of the model. */
  readonly model: string;
  /** Empty for models that accept none. */
  readonly prompt: string;
  /** With media types that were detected from the content; possibly files on the disk of this host. */
  readonly images: readonly Blob[];
  readonly mask?: Blob | undefined;
  /** Number of images requested with this call; at most the `imagesPerCall` of the endpoint. */
  readonly count: number;
  readonly parameters: MediaParameters;
  /** How the parameters are sent to the provider of this model. */
  readonly wireMapping: WireMapping;
  readonly signal: AbortSignal;
}

/** Properties of generated images, in the provider's words. */
export interface ImageProperties {
  readonly size?: string;
  readonly quality?: string;
  readonly background?: string;
}

/**
 * May contain fewer images than were requested. If the provider bills per image and invoices more than it delivered,
 * `usage` has the invoiced number.
 */
export interface GeneratedImages extends GenerationUsage {
  readonly files: readonly GeneratedFile[];
  /** What the provider reports about the images. */
  readonly properties?: ImageProperties;
}

/** Calls to a provider of videos. Generating a video takes long, so its status is polled. */
export interface VideoProvider {
  /**
   * Submits a job. Only an `UpstreamError` with `isUnsent` or certain values of `status` proves that the provider did
   * not accept the job. After any other error the outcome is unknown, and the job must not be submitted again.
   */
  submit(order: VideoOrder): Promise<SubmittedVideo>;
  /** Has no side effects; may be repeated. @throws UpstreamError if the status is unknown */
  getStatus(reference: string, signal: AbortSignal): Promise<VideoStatus>;
  /**
   * Returns the job that a webhook reports.
   * @param model the provider's model name for the video whose webhook was called
   * @returns undefined if the webhook lacks the provider's signature, or reports nothing
   */
  parseWebhook?(webhook: ProviderWebhook, model: string): Promise<SubmittedVideo | undefined>;
}

export interface VideoOrder {
  /** The provider's name of the model. */
  readonly model: string;
  readonly prompt: string;
  readonly image?: SourceImage | undefined;
  readonly parameters: MediaParameters;
  /** How the parameters are sent to the provider of this model. */
  readonly wireMapping: WireMapping;
  /** Where the provider can report that the video is ready, if it supports webhooks and can reach the gateway. */
  readonly webhookUrl?: string | undefined;
  readonly signal: AbortSignal;
}

export interface SubmittedVideo {
  /** Identifies the job at the provider; stored in an event. */
  readonly reference: string;
  /** Identifies the line of the provider's invoice. */
  readonly vendorId: string;
}

export type VideoStatus =
  | { readonly state: 'pending' }
  | (GenerationUsage & { readonly state: 'made'; readonly file: GeneratedFile })
  /** The job failed. The operator absorbs what the provider invoices anyway. */
  | {
      readonly state: 'failed';
      readonly code: string;
      readonly message: string;
      readonly invoiced: ProviderInvoiceExpectation;
    };

/** An HTTP request from a provider, as it was received. */
export interface ProviderWebhook {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Uint8Array;
}

export interface SpeechCall {
  /** The provider's name of the model. */
  readonly model: string;
  readonly input: string;
  /** The provider's name of the voice. */
  readonly voice: string;
  readonly parameters: MediaParameters;
  readonly signal: AbortSignal;
}

/** Audio that is read while it is generated. */
export interface SpeechAudio {
  readonly mediaType: string;
  /** Can be read once; throws an UpstreamError if the stream is interrupted. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Number of characters that the provider bills; undefined if not reported. */
  readonly characters: number | undefined;
  readonly vendorId: string | undefined;
}

export interface TranscriptionCall {
  /** The provider's name of the model. */
  readonly model: string;
  /** The recording, on the disk of this host. */
  readonly file: { readonly path: string; readonly size: number; readonly mediaType: string; readonly name: string };
  readonly parameters: MediaParameters;
  readonly signal: AbortSignal;
}

/** Times are in seconds from the start of the recording. */
export interface SpokenWord {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** Times are in seconds from the start of the recording. */
export interface SpokenSegment {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface Transcript {
  readonly text: string;
  /** Undefined if the provider does not report it. */
  readonly language: string | undefined;
  readonly segments: readonly SpokenSegment[];
  readonly words: readonly SpokenWord[];
  /** Duration of the recording in seconds; undefined if the provider does not report it. */
  readonly seconds: number | undefined;
  /** Duration that the provider bills, in milliseconds; undefined if not reported. */
  readonly milliseconds: number | undefined;
  readonly vendorId: string | undefined;
}
