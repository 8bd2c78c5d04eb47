/** Vectors that stand for an input: always the same ones for the same input, of length 1, like those of OpenAI's models. */
import { createHash } from 'node:crypto';

/** OpenAI prints its 32-bit floats with about so many digits. */
const DIGITS = 8;

/** The first `length` numbers of the whole vector, made to length 1 again. */
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
