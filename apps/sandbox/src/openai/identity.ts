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

/** The provider that the simulated router names in its responses. */
export const ROUTED_PROVIDER = 'Sandbox';

/** Returns the field `x_groq` without the fields that differ between chunks. */
export function createGroqFields(output: SandboxModelOutput) {
  return { id: getRequestId(output) };
}
