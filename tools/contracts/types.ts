/**
 * What providers accept and send, by the types of their SDKs. `npm run contracts` makes a JSON schema of each property
 * of `ProviderContracts`. An SDK that renames or removes a type fails the type check here. Responses of OpenRouter are
 * in zod-contracts.ts, and providers of speech in speech/types.ts.
 */
import type Anthropic from '@anthropic-ai/sdk';
import type { ErrorResponse } from '@anthropic-ai/sdk/resources/shared';
import type { ChatRequest$Outbound } from '@openrouter/sdk/models';
import type Groq from 'groq-sdk';
import type { ChatCompletionCreateParams } from 'groq-sdk/resources/chat/completions';
import type OpenAI from 'openai';
import type { GoogleAerialViewContracts, GoogleMapsContracts, GoogleSolarContracts } from './data/google-maps.ts';
import type { ApolloContracts, FullEnrichContracts, HunterContracts, PeopleDataLabsContracts } from './data/people.ts';
import type { FirecrawlContracts, SerperContracts } from './data/web.ts';
import type {
  DeepInfraChatEvent,
  DeepInfraChatRequest,
  DeepInfraChatResponse,
  DeepInfraEmbeddingsRequest,
  DeepInfraError,
  DeepInfraImagesRequest,
  DeepInfraImagesResponse,
} from './deepinfra.ts';
import type { ExaContracts } from './exa.ts';
import type { FalContracts } from './fal.ts';
import type {
  GenerateContentBody,
  GenerateContentRequest,
  GoogleError,
  Operation,
  PredictLongRunningRequest,
} from './google.ts';

/** Tools that only the beta types have, because requests with them need a header. */
type BetaClientTool =
  | Anthropic.Beta.BetaToolBash20241022
  | Anthropic.Beta.BetaToolTextEditor20241022
  | Anthropic.Beta.BetaToolComputerUse20241022
  | Anthropic.Beta.BetaToolComputerUse20250124
  | Anthropic.Beta.BetaToolComputerUse20251124;

type MessagesRequest = Omit<Anthropic.MessageCreateParams, 'tools'> & {
  tools?: (Anthropic.ToolUnion | BetaClientTool)[];
};

export interface ProviderContracts {
  openai: {
    chatRequest: OpenAI.ChatCompletionCreateParams;
    chatResponse: OpenAI.ChatCompletion;
    chatEvent: OpenAI.ChatCompletionChunk;
    responsesRequest: OpenAI.Responses.ResponseCreateParams;
    responsesResponse: OpenAI.Responses.Response;
    responsesEvent: OpenAI.Responses.ResponseStreamEvent;
    embeddingsRequest: OpenAI.EmbeddingCreateParams;
    embeddingsResponse: OpenAI.CreateEmbeddingResponse;
    imagesRequest: OpenAI.ImageGenerateParams;
    imagesResponse: OpenAI.ImagesResponse;
    imageEditsRequest: OpenAI.ImageEditParams;
    imageEditsResponse: OpenAI.ImagesResponse;
    speechRequest: OpenAI.Audio.SpeechCreateParams;
    transcriptionsRequest: OpenAI.Audio.TranscriptionCreateParams;
    transcriptionsResponse: OpenAI.Audio.TranscriptionVerbose;
    error: { error: OpenAI.ErrorObject };
  };
  anthropic: {
    messagesRequest: MessagesRequest;
    messagesResponse: Anthropic.Message;
    messagesEvent: Anthropic.RawMessageStreamEvent;
    error: ErrorResponse;
  };
  groq: {
    /** Fields of the SDK that no model supports: https://console.groq.com/docs/openai */
    chatRequest: Omit<ChatCompletionCreateParams, 'n' | 'logprobs' | 'top_logprobs' | 'logit_bias'> & { n?: 1 | null };
    chatResponse: Groq.Chat.ChatCompletion;
    chatEvent: Groq.Chat.ChatCompletionChunk;
    error: { error: Groq.ErrorObject };
  };
  openrouter: {
    /** The SDK adds the default of `stream`. */
    chatRequest: Omit<ChatRequest$Outbound, 'stream'> & { stream?: boolean };
  };
  deepinfra: {
    chatRequest: DeepInfraChatRequest;
    chatResponse: DeepInfraChatResponse;
    chatEvent: DeepInfraChatEvent;
    embeddingsRequest: DeepInfraEmbeddingsRequest;
    embeddingsResponse: OpenAI.CreateEmbeddingResponse;
    imagesRequest: DeepInfraImagesRequest;
    imagesResponse: DeepInfraImagesResponse;
    error: DeepInfraError;
  };
  exa: ExaContracts;
  google: {
    generateContentQuery: { alt?: 'sse' };
    generateContentRequest: GenerateContentRequest;
    generateContentResponse: GenerateContentBody;
    generateContentEvent: GenerateContentBody | GoogleError;
    predictLongRunningRequest: PredictLongRunningRequest;
    predictLongRunningResponse: Operation;
    operationResponse: Operation;
    error: GoogleError;
  };
  fal: FalContracts;
  'google-maps': GoogleMapsContracts;
  'google-solar': GoogleSolarContracts;
  'google-aerial-view': GoogleAerialViewContracts;
  apollo: ApolloContracts;
  fullenrich: FullEnrichContracts;
  'people-data-labs': PeopleDataLabsContracts;
  hunter: HunterContracts;
  firecrawl: FirecrawlContracts;
  serper: SerperContracts;
}
