/**
 * The Gemini API as it is on the wire (camelCase). The SDK has types of its parameters, which it rearranges before it
 * sends them; its functions `generateContentParametersToMldev` and `generateVideosParametersToMldev` in dist/index.mjs
 * show the requests, and the ones that end in `FromMldev` the responses. Messages below them have the SDK's types,
 * without the fields that it documents as not supported in the Gemini API.
 */
import type {
  Candidate,
  Citation,
  Content,
  GenerateContentResponse,
  GenerationConfig,
  ImageConfig,
  SafetySetting,
  ServiceTier,
  Tool,
  ToolConfig,
} from '@google/genai';

/** Fields that the SDK rejects for the Gemini API, although their documentation does not say so. */
interface WireGenerationConfig
  extends Omit<GenerationConfig, 'audioTimestamp' | 'modelSelectionConfig' | 'translationConfig'> {
  imageConfig?: Omit<ImageConfig, 'personGeneration'>;
}

export interface GenerateContentRequest {
  contents: Content[];
  systemInstruction?: Content;
  generationConfig?: WireGenerationConfig;
  safetySettings?: SafetySetting[];
  tools?: Tool[];
  toolConfig?: ToolConfig;
  cachedContent?: string;
  serviceTier?: ServiceTier;
  labels?: Record<string, string>;
  continuationToken?: string;
  store?: boolean;
}

interface WireCandidate extends Omit<Candidate, 'citationMetadata'> {
  citationMetadata?: { citationSources?: Citation[] };
}

/** Also each event of `streamGenerateContent?alt=sse`. */
export interface GenerateContentBody
  extends Pick<
    GenerateContentResponse,
    'modelStatus' | 'modelVersion' | 'promptFeedback' | 'responseId' | 'usageMetadata'
  > {
  candidates?: WireCandidate[];
}

interface WireImage {
  bytesBase64Encoded?: string;
  mimeType?: string;
}

interface WireVideo {
  uri?: string;
  /** In base64. */
  encodedVideo?: string;
  /** Media type. */
  encoding?: string;
}

export interface PredictLongRunningRequest {
  instances: {
    prompt?: string;
    image?: WireImage;
    video?: WireVideo;
    lastFrame?: WireImage;
    referenceImages?: { image?: WireImage; referenceType?: 'ASSET' | 'STYLE' }[];
  }[];
  parameters?: {
    sampleCount?: number;
    durationSeconds?: number;
    aspectRatio?: string;
    resolution?: string;
    personGeneration?: string;
    negativePrompt?: string;
    enhancePrompt?: boolean;
  };
}

/** A long-running operation: https://ai.google.dev/api/models#Operation */
export interface Operation {
  name: string;
  metadata?: Record<string, unknown>;
  done?: boolean;
  error?: Status;
  response?: {
    '@type'?: string;
    generateVideoResponse?: {
      generatedSamples?: { video?: WireVideo }[];
      raiMediaFilteredCount?: number;
      raiMediaFilteredReasons?: string[];
    };
  };
}

interface Status {
  code: number;
  message: string;
  details?: Record<string, unknown>[];
}

/** https://cloud.google.com/apis/design/errors#http_mapping */
export interface GoogleError {
  error: Status & { status: string };
}
