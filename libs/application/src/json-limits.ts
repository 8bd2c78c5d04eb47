/** Maximum number of objects, lists and fields in a body. Legitimate bodies have fewer. */
const MAX_JSON_PARTS = 600_000;

/** Characters that mark what is expensive to parse: the start of an object or a list, and the colon of a field. */
const COSTLY_CHARACTERS = ['{', '[', ':'];

/**
 * Whether JSON is cheap enough to parse. With more parts than the maximum, parsing would take seconds, and many times
 * the memory of the text. Characters inside strings are counted too: only very long texts have that many.
 */
export function isWithinJsonLimits(json: string): boolean {
  if (json.length <= MAX_JSON_PARTS) return true;
  let remaining = MAX_JSON_PARTS;
  for (const sign of COSTLY_CHARACTERS) {
    for (let at = json.indexOf(sign); at >= 0; at = json.indexOf(sign, at + 1)) if (remaining-- === 0) return false;
  }
  return true;
}
