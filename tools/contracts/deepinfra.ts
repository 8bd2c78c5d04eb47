/**
 * DeepInfra has no SDK for its chats. These types follow its OpenAPI document 0.1.0
 * (https://api.deepinfra.com/openapi.json, as of 2026-05-20): OpenAIChatCompletionsIn, OpenAIEmbeddingsIn,
 * OpenAIImagesGenerationsIn, OpenAIImagesOut and HTTPValidationError. The document does not describe the responses of
 * chats; DeepInfra states that they are those of OpenAI (https://deepinfra.com/docs/openai_api), with the additions
 * below.
 */
import type OpenAI from 'openai';

interface Marked {
  cache_control?: Record<string, unknown> | null;
}

interface TextPart {
  type: 'text';
  text: string;
}

interface ImagePart {
  type: 'image_url';
  image_url: { url: string; detail?: 'auto' | 'low' | 'high' };
}

interface AudioPart {
  type: 'input_audio';
  input_audio: { data: string; format?: 'wav' | 'mp3' };
}

interface SystemMessage extends Marked {
  role: 'system';
  content: string | TextPart[];
  name?: string | null;
}

interface UserMessage extends Marked {
  role: 'user';
  content: string | (TextPart | ImagePart | AudioPart)[];
  name?: string | null;
}

interface AssistantMessage extends Marked {
  role: 'assistant';
  content?: string | TextPart[] | null;
  reasoning_content?: string | null;
  name?: string | null;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[] | null;
}

interface ToolMessage extends Marked {
  role: 'tool';
  content: string | TextPart[];
  tool_call_id: string;
}

interface Tool extends Marked {
  type?: string;
  function: { name: string; description?: string | null; parameters?: Record<string, unknown> | null };
}

type ResponseFormat =
  | { type: 'text' }
  | { type: 'json_object' }
  | { type: 'json_schema'; json_schema: { name: string; schema: Record<string, unknown> } }
  | { type: 'regex'; regex: string };

export interface DeepInfraChatRequest {
  model: string;
  messages: (SystemMessage | UserMessage | AssistantMessage | ToolMessage)[];
  stream?: boolean;
  temperature?: number;
  top_p?: number;
  min_p?: number;
  top_k?: number;
  max_tokens?: number | null;
  stop?: string | string[] | null;
  n?: 1 | 2 | 3 | 4;
  presence_penalty?: number;
  frequency_penalty?: number;
  tools?: Tool[] | null;
  tool_choice?: string | Tool | null;
  response_format?: ResponseFormat | null;
  repetition_penalty?: number;
  user?: string | null;
  seed?: number | null;
  logprobs?: boolean | null;
  stream_options?: { include_usage?: boolean; continuous_usage_stats?: boolean } | null;
  reasoning_effort?: 'low' | 'medium' | 'high' | 'none' | null;
  reasoning?: { effort?: 'low' | 'medium' | 'high' | null; enabled?: boolean | null } | null;
  prompt_cache_key?: string | null;
  chat_template_kwargs?: Record<string, unknown> | null;
}

export interface DeepInfraEmbeddingsRequest {
  model: string;
  input: string | string[];
  encoding_format?: 'float' | 'base64';
  dimensions?: number | null;
  service_tier?: 'default' | 'priority' | null;
}

export interface DeepInfraImagesRequest {
  model?: string;
  prompt: string;
  n?: number;
  size?: string;
  response_format?: 'b64_json';
  quality?: string | null;
  style?: string | null;
  user?: string | null;
}

export interface DeepInfraImagesResponse {
  created: number;
  data: { b64_json?: string | null; revised_prompt?: string | null; url?: string | null }[];
}

interface Usage extends OpenAI.CompletionUsage {
  estimated_cost?: number;
}

interface Message extends OpenAI.ChatCompletionMessage {
  reasoning_content?: string | null;
}

export interface DeepInfraChatResponse extends Omit<OpenAI.ChatCompletion, 'usage' | 'choices'> {
  choices: (Omit<OpenAI.ChatCompletion.Choice, 'message'> & { message: Message })[];
  usage?: Usage;
}

interface Delta extends OpenAI.ChatCompletionChunk.Choice.Delta {
  reasoning_content?: string | null;
}

export interface DeepInfraChatEvent extends Omit<OpenAI.ChatCompletionChunk, 'usage' | 'choices'> {
  choices: (Omit<OpenAI.ChatCompletionChunk.Choice, 'delta'> & { delta: Delta })[];
  usage?: Usage | null;
}

/** Invalid requests are rejected with the list of 422; other errors have OpenAI's format or a sentence. */
export type DeepInfraError =
  | {
      detail: { loc: (string | number)[]; msg: string; type: string; input?: unknown; ctx?: Record<string, unknown> }[];
    }
  | { detail: string | { error: string } }
  | { error: OpenAI.ErrorObject };
