/** Calls of vendors that make images, videos and sound, and what they answer. */
import type { WireMapping } from '#catalogue';
import type { PriceTerms, ProviderInvoiceExpectation, Usage } from '#domain';

/** A picture that a request brings, or a mask for one. */
export interface SourceImage {
  /** By its content, such as `image/png`. */
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** What a request says of the result, by our names: only what the endpoint knows, and all that the price depends on. */
export type MediaParameters = Readonly<Record<string, string | number | boolean>>;

/** A file that a vendor has made: handed over, or to be fetched at an address of its. */
export type GeneratedFile =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'address'; readonly url: string; readonly headers?: Readonly<Record<string, string>> };

/** What a vendor says of a call beside its result. */
export interface GenerationUsage {
  /** What it counts and reports by itself, such as tokens; undefined where it reports nothing. */
  readonly usage: Usage | undefined;
  /** What the price depended on, where the answer says so and differs from what was asked for. */
  readonly terms?: PriceTerms;
  /** What the vendor calls its answer, by which a line of its invoice can be found. */
  readonly vendorId: string | undefined;
}

export type { WireMapping };

export interface ImageCall {
  /** The vendor's name of the model. */
  readonly model: string;
  /** Empty for models that take none. */
  readonly prompt: string;
  /** Of their types by their content; perhaps on this machine's disk. */
  readonly images: readonly Blob[];
  readonly mask?: Blob | undefined;
  /** How many are wanted of this call: at most what the model makes at once. */
  readonly count: number;
  readonly parameters: MediaParameters;
  /** How this model's vendor is told of them. */
  readonly wireMapping: WireMapping;
  readonly signal: AbortSignal;
}

/**
 * There may be fewer than were wanted. Where the vendor bills by the image, and invoices more than there are, its usage
 * says how many.
 */
export interface GeneratedImages extends GenerationUsage {
  readonly files: readonly GeneratedFile[];
}

/** What can be asked of a vendor that makes videos: each takes long, and is asked for again and again. */
export interface VideoProvider {
  /**
   * Hands a job over. Only an `UpstreamError` with a `status`, or that was `isUnsent`, says for certain that it was not
   * taken: anything else leaves it unknown, and it must not be handed over again.
   */
  submit(order: VideoOrder): Promise<SubmittedVideo>;
  /** Changes nothing, and may be repeated. @throws UpstreamError when the vendor cannot be asked */
  getStatus(reference: string, signal: AbortSignal): Promise<VideoStatus>;
  /**
   * What a web hook names that was asked for with a video of this model (the vendor's name of it); undefined: it is not the
   * vendor's (its signature), or says nothing.
   */
  parseWebhook?(webhook: ProviderWebhook, model: string): Promise<SubmittedVideo | undefined>;
}

export interface VideoOrder {
  /** The vendor's name of the model. */
  readonly model: string;
  readonly prompt: string;
  readonly image?: SourceImage | undefined;
  readonly parameters: MediaParameters;
  /** How this model's vendor is told of them. */
  readonly wireMapping: WireMapping;
  /** Where the vendor may say that it is done, where it can and we are reached from outside. */
  readonly webhookUrl?: string | undefined;
  readonly signal: AbortSignal;
}

export interface SubmittedVideo {
  /** By which the vendor is asked for it: a fact keeps it. */
  readonly reference: string;
  /** By which a line of its invoice can be found. */
  readonly vendorId: string;
}

export type VideoStatus =
  | { readonly state: 'pending' }
  | (GenerationUsage & { readonly state: 'made'; readonly file: GeneratedFile })
  /** Nothing comes of it. What the vendor invoices nevertheless is the loss of the house. */
  | {
      readonly state: 'failed';
      readonly code: string;
      readonly message: string;
      readonly invoiced: ProviderInvoiceExpectation;
    };

/** A request that a vendor sends us, as it came. */
export interface ProviderWebhook {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Uint8Array;
}

export interface SpeechCall {
  /** The vendor's name of the model. */
  readonly model: string;
  readonly input: string;
  /** The vendor's name of the voice. */
  readonly voice: string;
  readonly parameters: MediaParameters;
  readonly signal: AbortSignal;
}

/** Sound as it comes. */
export interface SpeechAudio {
  readonly mediaType: string;
  /** May be read once. It throws an UpstreamError when it breaks off. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Characters that the vendor bills, where it says so. */
  readonly characters: number | undefined;
  readonly vendorId: string | undefined;
}

export interface TranscriptionCall {
  /** The vendor's name of the model. */
  readonly model: string;
  /** The recording, on this machine's disk. */
  readonly file: { readonly path: string; readonly size: number; readonly mediaType: string; readonly name: string };
  readonly parameters: MediaParameters;
  readonly signal: AbortSignal;
}

/** Times are in seconds from the beginning. */
export interface SpokenWord {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

export interface SpokenSegment {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface Transcript {
  readonly text: string;
  /** Where the vendor says it. */
  readonly language: string | undefined;
  readonly segments: readonly SpokenSegment[];
  readonly words: readonly SpokenWord[];
  /** The length of the recording, in seconds, where the vendor says it. */
  readonly seconds: number | undefined;
  /** What the vendor bills: undefined where it does not say. */
  readonly milliseconds: number | undefined;
  readonly vendorId: string | undefined;
}
