/** Bits as strings of zeros and ones, and codes that consist of them. */

/** Returns a non-negative integer in at least `width` bits, the highest bit first. */
export function toBits(value: number, width: number): string {
  return value.toString(2).padStart(width, '0');
}

/** Exp-Golomb code, used by H.264 for most numbers. */
export function encodeUnsignedGolomb(value: number): string {
  const bits = (value + 1).toString(2);
  return bits.padStart(2 * bits.length - 1, '0');
}

/** @param filler pads the last byte */
export function packBits(bits: string, filler: '0' | '1' = '0'): Buffer {
  const bytes = Buffer.alloc(Math.ceil(bits.length / 8));
  const padded = bits.padEnd(bytes.length * 8, filler);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = Number.parseInt(padded.slice(i * 8, i * 8 + 8), 2);
  return bytes;
}

/** Packs numbers as WebP does: bytes are filled from the lowest bit, and each number starts with its lowest bit. */
export function packBitsLowestFirst(numbers: readonly (readonly [value: number, width: number])[]): Buffer {
  const bits = numbers.map(([value, width]) => [...toBits(value, width)].reverse().join('')).join('');
  return Buffer.from(packBits(bits).map((byte) => Number.parseInt([...toBits(byte, 8)].reverse().join(''), 2)));
}
