/** Reads the parts of a response of Gemini. */
import { randomUUID } from 'node:crypto';
import type { GeminiPart, GenerateContentResponse } from './chat-outcome.ts';

export type OutputPart =
  | { readonly kind: 'text' | 'thought'; readonly text: string }
  | {
      readonly kind: 'call';
      /** In OpenAI's format. */
      readonly call: {
        readonly id: string;
        readonly type: 'function';
        readonly function: { readonly name: string; readonly arguments: string };
      };
      readonly signature: string | undefined;
    };

/** Returns the parts of the first candidate, which is the only one. Parts of other kinds were not requested. */
export function readParts({ candidates }: GenerateContentResponse): readonly OutputPart[] {
  const parts = candidates?.[0]?.content?.parts;
  return (Array.isArray(parts) ? parts : []).flatMap((part) => (part ? readPart(part) : []));
}

function readPart({ text, thought, functionCall, thoughtSignature }: GeminiPart): readonly OutputPart[] {
  if (functionCall) {
    const { id, name, args } = functionCall;
    const call = {
      // Clients name the call of a result by its id, which earlier versions of the API do not assign.
      id: typeof id === 'string' && id !== '' ? id : `call_${randomUUID().replaceAll('-', '')}`,
      type: 'function' as const,
      function: { name: String(name), arguments: JSON.stringify(args ?? {}) },
    };
    return [{ kind: 'call', call, signature: typeof thoughtSignature === 'string' ? thoughtSignature : undefined }];
  }
  if (typeof text !== 'string' || text === '') return [];
  return [{ kind: thought === true ? 'thought' : 'text', text }];
}
