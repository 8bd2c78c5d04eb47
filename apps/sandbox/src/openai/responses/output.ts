/** The output of a response, and the response object. */

import type { Fault } from '../../provider/directive.ts';
import type { SandboxModelOutput } from '../../provider/model-output.ts';
import type { SandboxContentPart } from '../chat-request.ts';
import { callId } from '../identity.ts';
import { logprobsOf } from '../logprobs.ts';
import type { OpenAiModel } from '../models.ts';
import { usageOf } from '../usage.ts';
import { encrypted } from './reasoning.ts';
import type { SandboxResponsesRequest } from './request.ts';

export type OpenAiAnswer = SandboxModelOutput<OpenAiModel>;
export type SandboxOutputItem = SandboxContentPart & { readonly type: string; readonly id: string };

/** Shown in place of the model's actual reasoning. */
export const SUMMARY = '**Thinking about it**\n\nThe user wants an answer, so there will be one.';

export function responseId({ serial }: SandboxModelOutput): string {
  return `resp_${serial}`;
}

/** In the order in which they are made. */
export function outputOf(answer: OpenAiAnswer, request: SandboxResponsesRequest): readonly SandboxOutputItem[] {
  const thought = reasoningItem(answer, request);
  return [...(thought ? [thought] : []), ...searchItems(answer), ...saidOf(answer, request)];
}

/** The message, or the calls; nothing where the reasoning reached the limit. */
export function saidOf(answer: OpenAiAnswer, request: SandboxResponsesRequest): readonly SandboxOutputItem[] {
  const { tool, finish, visible, reasoning } = answer;
  if (finish === 'length' && visible === 0 && reasoning > 0) return [];
  if (tool === undefined) return [messageItem(answer, request)];
  return Array.from({ length: answer.calls }, (_, call) => callItem(answer, request, call));
}

export function searchItems({ serial, searches }: SandboxModelOutput): readonly SandboxOutputItem[] {
  return searches.map(({ query, failed }, at) => {
    const action = { type: 'search', query };
    return { id: `ws_${serial}${at}`, type: 'web_search_call', status: failed ? 'failed' : 'completed', action };
  });
}

/** The first page that each search has found, as a source of all that is said. */
export function citationsOf({ searches, text }: SandboxModelOutput): readonly SandboxContentPart[] {
  return searches.flatMap(({ failed }, at) => {
    const url = `https://site1.example/${at + 1}`;
    const source = { type: 'url_citation', url, title: 'Page 1', start_index: 0, end_index: text.length };
    return failed ? [] : [source];
  });
}

export function reasoningItem(
  { serial, reasoning }: SandboxModelOutput,
  { extras }: SandboxResponsesRequest,
): SandboxOutputItem | undefined {
  if (reasoning === 0) return undefined;
  const id = `rs_${serial}`;
  const summary = extras.summary ? [{ type: 'summary_text', text: SUMMARY }] : [];
  return {
    id,
    type: 'reasoning',
    summary,
    ...(extras.encrypted ? { encrypted_content: encrypted(id, reasoning) } : {}),
  };
}

function messageItem(answer: OpenAiAnswer, { extras }: SandboxResponsesRequest): SandboxOutputItem {
  const { serial, text } = answer;
  const part = { ...textPart(text, extras.logprobs), annotations: citationsOf(answer) };
  return { id: `msg_${serial}`, type: 'message', status: statusOf(answer), role: 'assistant', content: [part] };
}

function callItem(answer: OpenAiAnswer, { toolbox }: SandboxResponsesRequest, call: number): SandboxOutputItem {
  const { serial, text, tool: name } = answer;
  const called = { status: statusOf(answer), call_id: callId(answer, 0, call), name };
  const takesText = toolbox.tools.some((tool) => tool.name === name && tool.schema === undefined);
  if (takesText) return { id: `ctc_${serial}${call}`, type: 'custom_tool_call', ...called, input: text };
  return { id: `fc_${serial}${call}`, type: 'function_call', ...called, arguments: text };
}

export function textPart(text: string, top: number | undefined) {
  return { type: 'output_text', annotations: [], logprobs: logprobsOf(text, top), text };
}

function statusOf({ finish }: SandboxModelOutput): string {
  return finish === 'length' ? 'incomplete' : 'completed';
}

export function responseObject(answer: OpenAiAnswer, { body }: SandboxResponsesRequest, state: SandboxContentPart) {
  const { effort = null, summary = null } = (body.reasoning ?? {}) as SandboxContentPart;
  const { format = { type: 'text' }, verbosity = 'medium' } = (body.text ?? {}) as SandboxContentPart;
  return {
    id: responseId(answer),
    object: 'response',
    created_at: answer.created,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: null,
    model: answer.model.snapshot,
    output: [],
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort, summary },
    safety_identifier: null,
    service_tier: 'default',
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: { format, verbosity },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    usage: null,
    user: body.user ?? null,
    metadata: body.metadata ?? {},
    ...state,
  };
}

/** As it is in the end. */
export function finished(answer: OpenAiAnswer, request: SandboxResponsesRequest, fault: Fault | undefined) {
  const long = answer.finish === 'length';
  return responseObject(answer, request, {
    status: statusOf(answer),
    ...(long ? { incomplete_details: { reason: 'max_output_tokens' } } : {}),
    output: outputOf(answer, request),
    usage: fault === 'no_usage' ? null : responsesUsage(answer, fault),
  });
}

function responsesUsage(answer: OpenAiAnswer, fault: Fault | undefined) {
  const chat = usageOf(answer, fault);
  return {
    input_tokens: chat.prompt_tokens,
    input_tokens_details: { cached_tokens: chat.prompt_tokens_details.cached_tokens },
    output_tokens: chat.completion_tokens,
    output_tokens_details: { reasoning_tokens: chat.completion_tokens_details.reasoning_tokens },
    total_tokens: chat.total_tokens,
  };
}
