import type { SandboxModelOutput } from '../provider/model-output.ts';
import { generateProse } from '../provider/tokens.ts';
import type { OpenAiProvider } from './models.ts';

/** Returns the model's reasoning in this field; no field if `field` is undefined or there is no reasoning. */
export function toReasoningFields(
  { reasoning }: SandboxModelOutput,
  field: OpenAiProvider['reasoningField'],
): Readonly<Record<string, string>> {
  return field === undefined || reasoning === 0 ? {} : { [field]: generateProse(reasoning) };
}
