/** Bits, as a string of zeros and ones, and the codes that are made of them. */

/** So many bits of a whole number, the highest first. */
export function toBits(value: number, width: number): string {
  return value.toString(2).padStart(width, '0');
}

/** Exp-Golomb, as H.264 writes most of its numbers. */
export function encodeUnsignedGolomb(value: number): string {
  const bits = (value + 1).toString(2);
  return bits.padStart(2 * bits.length - 1, '0');
}

/** @param filler what the last byte is filled up with */
export function packBits(bits: string, filler: '0' | '1' = '0'): Buffer {
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8));
  const padded = bits.padEnd(bytes.length * 8, filler);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = Number.parseInt(padded.slice(i * 8, i * 8 + 8), 2);
  return bytes;
}

/** Bits that are written the lowest first, each number from its lowest bit on, as WebP has them. */
export function packBitsLowestFirst(numbers: readonly (readonly [value: number, width: number])[]): Buffer {
  const bits = numbers.map(([value, width]) => [...toBits(value, width)].reverse().join('')).join('');
  return Buffer.from(packBits(bits).map((byte) => Number.parseInt([...toBits(byte, 8)].reverse().join(''), 2)));
}
