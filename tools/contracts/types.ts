/**
 * What providers accept and send, by the types of their SDKs. `npm run contracts` makes a JSON schema of each property
 * of `ProviderContracts`. An SDK that renames or removes a type fails the type check here. Responses of OpenRouter are in
 * zod-contracts.ts.
 */
import type Anthropic from '@anthropic-ai/sdk';
import type { ErrorResponse } from '@anthropic-ai/sdk/resources/shared';
import type { ChatRequest$Outbound } from '@openrouter/sdk/models';
import type Groq from 'groq-sdk';
import type { ChatCompletionCreateParams } from 'groq-sdk/resources/chat/completions';
import type OpenAI from 'openai';
import type {
  DeepInfraChatEvent,
  DeepInfraChatRequest,
  DeepInfraChatResponse,
  DeepInfraEmbeddingsRequest,
  DeepInfraError,
} from './deepinfra.ts';
import type { ExaError, ExaSearchRequest, ExaSearchResponse } from './exa.ts';

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
    error: { error: OpenAI.ErrorObject };
  };
  anthropic: {
    messagesRequest: Anthropic.MessageCreateParams;
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
    error: DeepInfraError;
  };
  exa: {
    searchRequest: ExaSearchRequest;
    searchResponse: ExaSearchResponse;
    error: ExaError;
  };
}
