/** OpenAI's answer in one piece. */

import type { Fault } from '../provider/directive.ts';
import type { SandboxModelOutput } from '../provider/model-output.ts';
import type { SandboxChatRequest } from './chat-request.ts';
import { answerId, callId, finishReason } from './identity.ts';
import { chatLogprobs } from './logprobs.ts';
import type { OpenAiModel } from './models.ts';
import { thoughtsOf } from './reasoning.ts';
import { usageOf } from './usage.ts';

export function completion(
  answer: SandboxModelOutput<OpenAiModel>,
  { thoughts, logprobs: top }: SandboxChatRequest,
  fault: Fault | undefined,
) {
  const { created, model, n } = answer;
  const choice = (index: number) => {
    return {
      index,
      message: { ...message(answer, index), ...thoughtsOf(answer, thoughts) },
      logprobs: chatLogprobs(answer, answer.text, top),
      finish_reason: finishReason(answer),
    };
  };
  return {
    id: answerId(answer),
    object: 'chat.completion',
    created,
    model: model.snapshot,
    choices: Array.from({ length: n }, (_, index) => choice(index)),
    ...(fault === 'no_usage' ? {} : { usage: usageOf(answer, fault) }),
    service_tier: 'default',
    system_fingerprint: model.fingerprint,
  };
}

function message(answer: SandboxModelOutput, index: number) {
  const { text, tool, calls } = answer;
  const rest = { refusal: null, annotations: [] };
  if (tool === undefined) return { role: 'assistant', content: text, ...rest };
  const tool_calls = Array.from({ length: calls }, (_, call) => {
    return { id: callId(answer, index, call), type: 'function', function: { name: tool, arguments: text } };
  });
  return { role: 'assistant', content: null, tool_calls, ...rest };
}
