/** Maximum number of objects, lists and fields in a body. Legitimate bodies have fewer. */
const MAX_JSON_PARTS = 600_000;

/** Characters that mark what is expensive to parse: the start of an object or a list, and the colon of a field. */
const COSTLY_CHARACTERS = ['{', '[', ':'];

/**
 * Whether JSON is cheap enough to parse. With more parts than the maximum, parsing would take seconds, and many times
 * the memory of the text. Characters inside strings are counted too: only very long texts have that many.
 */
export function isWithinJsonLimits(json: string): boolean {
  return json.length <= MAX_JSON_PARTS || countCharacters(json, COSTLY_CHARACTERS, MAX_JSON_PARTS) <= MAX_JSON_PARTS;
}

/** Characters that mark all values of JSON, also those of a list. */
const VALUE_CHARACTERS = ['{', '[', ':', ','];

/**
 * Returns how many of the characters `{`, `[`, `:` and `,` a text has; more than `max` are not counted exactly. The time
 * to parse JSON grows with them. Those inside strings are counted too.
 */
export function countJsonValues(json: string, max: number): number {
  return countCharacters(json, VALUE_CHARACTERS, max);
}

/** Returns how many of these characters a text has; more than `max` are not counted exactly. */
function countCharacters(text: string, characters: readonly string[], max: number): number {
  let count = 0;
  for (const sign of characters) {
    for (let at = text.indexOf(sign); at >= 0; at = text.indexOf(sign, at + 1)) if (++count > max) return count;
  }
  return count;
}
