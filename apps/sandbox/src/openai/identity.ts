import type { Answer } from '../provider/answer.ts';

/** Headers that OpenAI's answers carry. */
export function identityHeaders({ serial, model }: Answer): Readonly<Record<string, string>> {
  return {
    'x-request-id': `req_${serial}`,
    'openai-model': model.snapshot,
    'openai-version': '2020-10-01',
  };
}

export function answerId({ serial }: Answer): string {
  return `chatcmpl-${serial}`;
}

/** The id of a tool call in a choice. */
export function callId({ serial }: Answer, choice: number, call: number): string {
  return `call_${serial}${choice}${call}`;
}

export function finishReason({ finish }: Answer): string {
  return { end: 'stop', length: 'length', tool: 'tool_calls' }[finish];
}
