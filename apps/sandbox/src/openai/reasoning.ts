import type { SandboxModelOutput } from '../provider/model-output.ts';
import { wordsOf } from '../provider/tokens.ts';
import type { OpenAiProvider } from './models.ts';

/** What the model reasoned, in the field of a message or of a piece of one; nothing where it is not returned. */
export function thoughtsOf(
  { reasoning }: SandboxModelOutput,
  field: OpenAiProvider['thoughts'],
): Readonly<Record<string, string>> {
  return field === undefined || reasoning === 0 ? {} : { [field]: wordsOf(reasoning) };
}
