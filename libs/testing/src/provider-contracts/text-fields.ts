/** Reads query parameters and the fields of forms, which are all texts, as the values that a schema describes. */
import { type ContractSchema, type Definitions, findDeviations } from './find-deviations.ts';

export type TextField = readonly [name: string, text: string];

/**
 * A field that occurs more than once, or whose name ends with `[]`, is an array. A text is a number or a boolean if the
 * schema requires one.
 */
export function readTextFields(
  fields: readonly TextField[],
  schema: ContractSchema,
  definitions: Definitions,
): Readonly<Record<string, unknown>> {
  const texts = new Map<string, string[]>();
  for (const [name, text] of fields) texts.set(name, [...(texts.get(name) ?? []), text]);
  const values: Record<string, unknown> = {};
  for (const [name, [first = '', ...repeated]] of texts) {
    const fieldName = name.replace(/\[\]$/, '');
    const isArray = name.endsWith('[]') || repeated.length > 0;
    const readings = isArray ? [[first, ...repeated]] : [first, ...readText(first), [first]];
    const isValid = (value: unknown) =>
      !findDeviations({ [fieldName]: value }, schema, definitions).some(({ path }) => path.startsWith(fieldName));
    values[fieldName] = readings.find(isValid) ?? readings[0];
  }
  return values;
}

/** Returns the number or the boolean that a text may be. */
function readText(text: string): readonly (number | boolean)[] {
  if (/^-?\d+(\.\d+)?$/.test(text)) return [Number(text)];
  return text === 'true' || text === 'false' ? [text === 'true'] : [];
}
