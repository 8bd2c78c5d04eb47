/** Creates the output items of a response, and the response object. */

import type { Fault } from '../../provider/directive.ts';
import type { SandboxModelOutput } from '../../provider/model-output.ts';
import type { SandboxContentPart } from '../chat-request.ts';
import { getCallId } from '../identity.ts';
import { toLogprobs } from '../logprobs.ts';
import type { OpenAiModel } from '../models.ts';
import { OPENAI_FIELDS } from '../response-fields.ts';
import { toUsage } from '../usage.ts';
import { encryptReasoning } from './reasoning.ts';
import type { SandboxResponsesRequest } from './request.ts';

export type OpenAiOutput = SandboxModelOutput<OpenAiModel>;
export type SandboxOutputItem = SandboxContentPart & { readonly type: string; readonly id: string };

const POLICY_ERROR = { code: 'cyber_policy', message: 'This request was flagged by the safety system.' };
/** Sent instead of a summary of actual reasoning. */
export const SUMMARY = '**Thinking about it**\n\nThe user wants an answer, so there will be one.';

export function getResponseId({ serial }: SandboxModelOutput): string {
  return `resp_${serial}`;
}

/** Returns all output items, in the order in which they are generated. */
export function toOutputItems(output: OpenAiOutput, request: SandboxResponsesRequest): readonly SandboxOutputItem[] {
  const reasoning = createReasoningItem(output, request);
  return [...(reasoning ? [reasoning] : []), ...createSearchItems(output), ...toVisibleItems(output, request)];
}

/** Returns the message or the calls; an empty list if the reasoning reached the limit. */
export function toVisibleItems(output: OpenAiOutput, request: SandboxResponsesRequest): readonly SandboxOutputItem[] {
  const { tool, finish, visible, reasoning } = output;
  if (finish === 'length' && visible === 0 && reasoning > 0) return [];
  if (tool === undefined) return [createMessageItem(output, request)];
  return Array.from({ length: output.calls }, (_, call) => createCallItem(output, request, call));
}

export function createSearchItems({ serial, searches }: SandboxModelOutput): readonly SandboxOutputItem[] {
  return searches.map(({ query, failed }, at) => {
    const action = { type: 'search', query };
    return { id: `ws_${serial}${at}`, type: 'web_search_call', status: failed ? 'failed' : 'completed', action };
  });
}

/** Cites the first page of each successful search as a source of the full text. */
export function toCitations({ searches, text }: SandboxModelOutput): readonly SandboxContentPart[] {
  return searches.flatMap(({ failed }, at) => {
    const url = `https://site1.example/${at + 1}`;
    const source = { type: 'url_citation', url, title: 'Page 1', start_index: 0, end_index: text.length };
    return failed ? [] : [source];
  });
}

export function createReasoningItem(
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
    ...(extras.encrypted ? { encrypted_content: encryptReasoning(id, reasoning) } : {}),
  };
}

function createMessageItem(output: OpenAiOutput, { extras }: SandboxResponsesRequest): SandboxOutputItem {
  const { serial, text } = output;
  const part = { ...createTextPart(text, extras.logprobs), annotations: toCitations(output) };
  return { id: `msg_${serial}`, type: 'message', status: getStatus(output), role: 'assistant', content: [part] };
}

function createCallItem(output: OpenAiOutput, { toolbox }: SandboxResponsesRequest, call: number): SandboxOutputItem {
  const { serial, text, tool: name } = output;
  const called = { status: getStatus(output), call_id: getCallId(output, 0, call), name };
  const acceptsText = toolbox.tools.some((tool) => tool.name === name && tool.schema === undefined);
  if (acceptsText) return { id: `ctc_${serial}${call}`, type: 'custom_tool_call', ...called, input: text };
  return { id: `fc_${serial}${call}`, type: 'function_call', ...called, arguments: text };
}

export function createTextPart(text: string, top: number | undefined) {
  return { type: 'output_text', annotations: [], logprobs: toLogprobs(text, top), text };
}

function getStatus({ finish }: SandboxModelOutput): string {
  return finish === 'length' ? 'incomplete' : 'completed';
}

export function createResponseObject(
  output: OpenAiOutput,
  { body }: SandboxResponsesRequest,
  state: SandboxContentPart,
) {
  const { effort = null, summary = null } = (body.reasoning ?? {}) as SandboxContentPart;
  const { format = { type: 'text' }, verbosity = 'medium' } = (body.text ?? {}) as SandboxContentPart;
  return {
    id: getResponseId(output),
    object: 'response',
    created_at: output.created,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: null,
    model: output.model.snapshot,
    output: [],
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort, summary },
    safety_identifier: null,
    service_tier: output.reportedBill.serviceTier ?? 'default',
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: { format, verbosity },
    tool_choice: body.tool_choice ?? 'auto',
    tools: ((body.tools ?? []) as readonly SandboxContentPart[]).map(withStrictness),
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    usage: null,
    ...(body.user === undefined ? {} : { user: body.user }),
    metadata: body.metadata ?? {},
    access_programs: null,
    ...state,
  };
}

/** Functions are strict by default. */
function withStrictness(tool: SandboxContentPart): SandboxContentPart {
  return tool.type === 'function' ? { strict: true, ...tool } : tool;
}

/** Returns the response object as it is at the end of the response. */
export function createFinishedResponse(
  output: OpenAiOutput,
  request: SandboxResponsesRequest,
  fault: Fault | undefined,
) {
  if (fault === 'policy_billed') {
    const usage = toResponsesUsage(output, fault);
    return createResponseObject(output, request, { status: 'failed', error: POLICY_ERROR, usage });
  }
  const long = output.finish === 'length';
  return createResponseObject(output, request, {
    status: getStatus(output),
    ...(long ? { incomplete_details: { reason: 'max_output_tokens' } } : {}),
    output: toOutputItems(output, request),
    usage: fault === 'no_usage' ? null : toResponsesUsage(output, fault),
  });
}

function toResponsesUsage(output: OpenAiOutput, fault: Fault | undefined) {
  const chat = toUsage(output, fault, OPENAI_FIELDS);
  return {
    input_tokens: chat.prompt_tokens,
    input_tokens_details: { cached_tokens: chat.prompt_tokens_details.cached_tokens, cache_write_tokens: 0 },
    output_tokens: chat.completion_tokens,
    output_tokens_details: { reasoning_tokens: chat.completion_tokens_details.reasoning_tokens },
    total_tokens: chat.total_tokens,
  };
}
