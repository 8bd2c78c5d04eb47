/** Creates OpenAI's non-streaming chat completion. */

import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import type { SandboxChatRequest } from './chat-request.ts';
import { createGroqFields, getCallId, getCompletionId, getFinishReason, ROUTED_PROVIDER } from './identity.ts';
import { toChatLogprobs } from './logprobs.ts';
import type { OpenAiModel } from './models.ts';
import { toReasoningFields } from './reasoning.ts';
import { toUsage } from './usage.ts';

export function createCompletion(
  output: SandboxModelOutput<OpenAiModel>,
  { reasoningField, responseFields, costField, serviceTier, logprobs: top }: SandboxChatRequest,
  fault: Fault | undefined,
) {
  const { created, model, n } = output;
  const createChoice = (index: number) => {
    return {
      index,
      message: { ...createMessage(output, index, fault), ...toReasoningFields(output, reasoningField) },
      logprobs: toChatLogprobs(output, output.text, top),
      finish_reason: getFinishReason(output),
    };
  };
  return {
    id: getCompletionId(output),
    ...(responseFields === 'provider' ? { provider: ROUTED_PROVIDER } : {}),
    object: 'chat.completion',
    created,
    model: model.snapshot,
    choices: Array.from({ length: n }, (_, index) => createChoice(index)),
    ...(fault === 'no_usage' ? {} : { usage: toUsage(output, fault, costField) }),
    service_tier: output.reportedBill.serviceTier ?? serviceTier,
    system_fingerprint: model.fingerprint,
    ...(responseFields === 'x_groq' ? { x_groq: createGroqFields(output) } : {}),
  };
}

function createMessage(output: SandboxModelOutput, index: number, fault: Fault | undefined) {
  const { text, tool, calls } = output;
  if (fault === 'refusal') return { role: 'assistant', content: null, refusal: text, annotations: [] };
  const rest = { refusal: null, annotations: [] };
  if (tool === undefined) return { role: 'assistant', content: text, ...rest };
  const tool_calls = Array.from({ length: calls }, (_, call) => {
    return { id: getCallId(output, index, call), type: 'function', function: { name: tool, arguments: text } };
  });
  return { role: 'assistant', content: null, tool_calls, ...rest };
}
