/** Objects, lists and fields of the largest body that anybody has a use for. */
export const MAX_JSON_PARTS = 600_000;

/** Signs of JSON that are dear to parse: objects, lists and fields. */
const COSTLY_CHARACTERS = ['{', '[', ':'];

/**
 * Whether JSON may be parsed: with more objects, lists and fields that would take seconds, and many times the memory of the text.
 * Signs that stand in a text are counted as well; a text with so many is longer than any model reads.
 */
export function isWithinJsonLimits(json: string): boolean {
  if (json.length <= MAX_JSON_PARTS) return true;
  let remaining = MAX_JSON_PARTS;
  for (const sign of COSTLY_CHARACTERS) {
    for (let at = json.indexOf(sign); at >= 0; at = json.indexOf(sign, at + 1)) if (remaining-- === 0) return false;
  }
  return true;
}
