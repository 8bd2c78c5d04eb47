import { type JsonObject } from '#kernel';

import type { Toolset } from './toolset.ts';

/** A request in the shape of OpenAI's Responses. The edge has checked the types; everything else is checked here. */
export interface ResponsesBody {
  readonly model: string;
  readonly input: string | readonly unknown[];
  readonly instructions?: string | null;
  readonly max_output_tokens?: number | null;
  readonly tools?: readonly unknown[] | null;
  readonly tool_choice?: unknown;
  readonly reasoning?: JsonObject | null;
  readonly text?: JsonObject | null;
  readonly response_format?: JsonObject | null;
  readonly metadata?: JsonObject | null;
  readonly previous_response_id?: string | null;
  readonly store?: boolean | null;
  readonly stream?: boolean | null;
  readonly include?: readonly string[] | null;
  readonly top_logprobs?: number | null;
  readonly truncation?: string | null;
  readonly [field: string]: unknown;
}

/** What a request says in several ways, in OpenAI's flat forms. */
export interface ParsedResponsesOptions {
  readonly toolset: Toolset;
  readonly format: JsonObject;
  readonly store: boolean;
  /** The conversation is compacted, instead of answered. */
  readonly isCompaction: boolean;
}
