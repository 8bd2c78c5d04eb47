import type { SandboxModelOutput } from '../provider/model-output.ts';

/** Returns the identifying headers of OpenAI's responses. */
export function createIdentityHeaders(output: SandboxModelOutput): Readonly<Record<string, string>> {
  return {
    'x-request-id': getRequestId(output),
    'openai-model': output.model.snapshot,
    'openai-version': '2020-10-01',
  };
}

/** Returns the request id, which is the only id of an encrypted response that the gateway sees. */
export function getRequestId({ serial }: SandboxModelOutput): string {
  return `req_${serial}`;
}

export function getCompletionId({ serial }: SandboxModelOutput): string {
  return `chatcmpl-${serial}`;
}

/** Returns the id of a tool call in a choice. */
export function getCallId({ serial }: SandboxModelOutput, choice: number, call: number): string {
  return `call_${serial}${choice}${call}`;
}

export function getFinishReason({ finish }: SandboxModelOutput): string {
  return { end: 'stop', length: 'length', tool: 'tool_calls' }[finish];
}
