/**
 * Request parameters that a response repeats, with the values that were used. A generation parameter that the endpoint
 * does not support is null, omitted, or has its default.
 */

import { type JsonObject } from '#kernel';

import type { CompletionSource } from '../chat/completion-writer.ts';
import type { ParsedResponsesRequest } from './request.ts';

/** Texts that are repeated as they were sent. */
const IDENTIFIERS = ['user', 'safety_identifier', 'prompt_cache_key'] as const;

/** @param source the endpoint that generates the response; undefined until one responds */
export function toEchoedParameters(
  { native, format, toolset, store, metadata }: ParsedResponsesRequest,
  source?: CompletionSource,
): JsonObject {
  const { body } = native;
  const isSupported = (parameter: string) => source?.supportedParameters.includes(parameter) ?? true;
  const used: JsonObject = { ...body, ...source?.sampling };
  /** Returns the default if the request does not set the parameter, and null if it was set but not used. */
  const getSetting = (field: string, byDefault: number) =>
    (body[field] ?? null) === null ? byDefault : isSupported(field) ? used[field] : null;
  const { effort = null, summary = null } = isSupported('reasoning') ? (body.reasoning ?? {}) : {};
  const verbosity = isSupported('verbosity') ? body.text?.verbosity : undefined;
  const top = isSupported('top_logprobs') ? body.top_logprobs : undefined;
  return {
    instructions: body.instructions ?? null,
    metadata,
    parallel_tool_calls: isSupported('parallel_tool_calls') ? (body.parallel_tool_calls ?? true) : true,
    temperature: getSetting('temperature', 1),
    top_p: getSetting('top_p', 1),
    presence_penalty: getSetting('presence_penalty', 0),
    frequency_penalty: getSetting('frequency_penalty', 0),
    tool_choice: toolset.choice,
    tools: toolset.tools,
    max_output_tokens: body.max_output_tokens ?? null,
    previous_response_id: body.previous_response_id ?? null,
    reasoning: { effort, summary },
    text: { format: isSupported('response_format') ? format : { type: 'text' }, ...(verbosity ? { verbosity } : {}) },
    store,
    truncation: body.truncation ?? 'disabled',
    ...(top ? { top_logprobs: top } : {}),
    service_tier: 'default',
    // OpenAI's clients expect a string or no key.
    ...Object.fromEntries(IDENTIFIERS.filter((field) => body[field]).map((field) => [field, body[field]])),
  };
}
