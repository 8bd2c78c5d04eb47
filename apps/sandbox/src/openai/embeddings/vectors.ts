/** Generates vectors, always the same for the same input and model. As with OpenAI, their norm is 1. */
import { createHash } from 'node:crypto';

/** Approximate number of digits of OpenAI's 32-bit floats. */
const DIGITS = 8;

/** Returns the first `length` components of the input's vector, scaled to a norm of 1. */
export function toVector(input: string | readonly number[], model: string, length: number): readonly number[] {
  let state = createHash('sha256')
    .update(JSON.stringify([model, input]))
    .digest()
    .readUInt32LE();
  const raw = Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  const norm = Math.hypot(...raw) || 1;
  return raw.map((component) => Number((component / norm).toPrecision(DIGITS)));
}

export function toBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((component, i) => {
    bytes.writeFloatLE(component, i * 4);
  });
  return bytes.toString('base64');
}
