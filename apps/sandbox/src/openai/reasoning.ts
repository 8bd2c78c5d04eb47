import type { SandboxModelOutput } from '../provider/model-output.ts';
import { generateProse } from '../provider/tokens.ts';
import type { OpenAiProvider } from './models.ts';

/** What the model reasoned, in the field of a message or of a piece of one; nothing where it is not returned. */
export function toReasoningFields(
  { reasoning }: SandboxModelOutput,
  field: OpenAiProvider['reasoningField'],
): Readonly<Record<string, string>> {
  return field === undefined || reasoning === 0 ? {} : { [field]: generateProse(reasoning) };
}
