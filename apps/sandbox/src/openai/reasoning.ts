import type { SandboxModelOutput } from '../provider/model-output.ts';
import { generateProse } from '../provider/tokens.ts';
import type { ResponseFields } from './response-fields.ts';

/** Returns the model's reasoning in this field; no field if `field` is undefined or there is no reasoning. */
export function toReasoningFields(
  { reasoning }: SandboxModelOutput,
  field: ResponseFields['reasoning'],
): Readonly<Record<string, string>> {
  return field === undefined || reasoning === 0 ? {} : { [field]: generateProse(reasoning) };
}
