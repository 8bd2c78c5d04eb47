import { type JsonObject } from '#kernel';

import type { Toolset } from './toolset.ts';

/** A request of OpenAI's Responses API. The edge validates the types of most fields; the others are validated here. */
export interface ResponsesBody {
  readonly model: string;
  readonly models?: readonly string[] | null;
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

/** Options that requests can specify in several ways, in one normalised form. */
export interface ParsedResponsesOptions {
  readonly toolset: Toolset;
  readonly format: JsonObject;
  readonly store: boolean;
  /** The model summarises the conversation instead of continuing it. */
  readonly isCompaction: boolean;
}
