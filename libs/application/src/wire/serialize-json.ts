/** Serialises JSON of any size without holding the event loop. `JSON.stringify` takes 60 ms for 24 MB. */
import { WorkParts } from '../event-loop.ts';

/** Values of up to this size are serialised at once, which takes a fraction of a millisecond. */
const MAX_SMALL_CHARACTERS = 64 * 1024;
const MAX_SMALL_VALUES = 2_000;
/** Text is encoded when it has this many characters. */
const FLUSH_CHARACTERS = 16 * 1024;

/**
 * Returns the same bytes as `JSON.stringify`: as one text for a small value, else as several buffers.
 * @param value plain data without `toJSON`
 */
export function serializeJson(value: unknown): string | Promise<readonly Buffer[]> {
  return isSmall(value) ? JSON.stringify(value) : serializeLarge(value, (text) => Buffer.from(text));
}

/** Returns the same text as `JSON.stringify`. @param value plain data without `toJSON`; not undefined */
export async function stringifyJson(value: unknown): Promise<string> {
  return isSmall(value) ? JSON.stringify(value) : (await serializeLarge(value, (text) => text)).join('');
}

/** Returns the parts of the text as `convert` returns them. */
async function serializeLarge<T>(value: unknown, convert: (text: string) => T): Promise<readonly T[]> {
  const converted: T[] = [];
  const parts = new WorkParts();
  let text = '';
  for (const fragment of serializeFragments(value)) {
    text += fragment;
    if (text.length < FLUSH_CHARACTERS) continue;
    converted.push(convert(text));
    text = '';
    await parts.rest();
  }
  converted.push(convert(text));
  return converted;
}

function* serializeFragments(value: unknown): Generator<string> {
  if (typeof value === 'string') yield* serializeText(value);
  else if (typeof value !== 'object' || value === null || isSmall(value)) yield JSON.stringify(value) ?? 'null';
  else if (Array.isArray(value)) {
    yield '[';
    for (let i = 0; i < value.length; i++) {
      if (i > 0) yield ',';
      yield* serializeFragments(value[i]);
    }
    yield ']';
  } else yield* serializeObject(value);
}

function* serializeObject(value: object): Generator<string> {
  let separator = '{';
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined || typeof member === 'function') continue;
    yield `${separator}${JSON.stringify(name)}:`;
    yield* serializeFragments(member);
    separator = ',';
  }
  yield separator === '{' ? '{}' : '}';
}

function* serializeText(text: string): Generator<string> {
  if (text.length <= MAX_SMALL_CHARACTERS) return yield JSON.stringify(text);
  yield '"';
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + FLUSH_CHARACTERS, text.length);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--; // its pair is serialised together
    yield JSON.stringify(text.slice(start, end)).slice(1, -1);
    start = end;
  }
  yield '"';
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** Whether a value has few characters and values. Visits few of them otherwise. */
function isSmall(value: unknown): boolean {
  return measure(value, { characters: MAX_SMALL_CHARACTERS, values: MAX_SMALL_VALUES });
}

function measure(value: unknown, remaining: { characters: number; values: number }): boolean {
  if (--remaining.values < 0) return false;
  if (typeof value === 'string') {
    remaining.characters -= value.length;
    return remaining.characters >= 0;
  }
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.length <= remaining.values && value.every((item) => measure(item, remaining));
  for (const name in value) {
    remaining.characters -= name.length;
    if (!measure((value as Record<string, unknown>)[name], remaining)) return false;
  }
  return true;
}
