import type { SandboxModelOutput } from '../provider/model-output.ts';

/** Headers that OpenAI's answers carry. */
export function createIdentityHeaders(output: SandboxModelOutput): Readonly<Record<string, string>> {
  return {
    'x-request-id': getRequestId(output),
    'openai-model': output.model.snapshot,
    'openai-version': '2020-10-01',
  };
}

/** All that is known of an answer to who cannot read it. */
export function getRequestId({ serial }: SandboxModelOutput): string {
  return `req_${serial}`;
}

export function getCompletionId({ serial }: SandboxModelOutput): string {
  return `chatcmpl-${serial}`;
}

/** The id of a tool call in a choice. */
export function getCallId({ serial }: SandboxModelOutput, choice: number, call: number): string {
  return `call_${serial}${choice}${call}`;
}

export function getFinishReason({ finish }: SandboxModelOutput): string {
  return { end: 'stop', length: 'length', tool: 'tool_calls' }[finish];
}
