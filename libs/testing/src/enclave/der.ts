/** Writes the encoding of X.509 certificates (DER), as far as tests need it. */

export const sequence = (...parts: readonly Buffer[]) => tagged(0x30, ...parts);
export const octets = (...parts: readonly Buffer[]) => tagged(0x04, ...parts);
export const bits = (bytes: Buffer) => tagged(0x03, Buffer.of(0), bytes);
export const utf8 = (text: string) => tagged(0x0c, Buffer.from(text));
export const ia5 = (text: string) => tagged(0x16, Buffer.from(text));
export const truth = () => tagged(0x01, Buffer.of(0xff));

/** A number from 0 to 2^31 - 1. */
export function integer(value: number): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
  return tagged(0x02, (bytes[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
}

/** An object identifier such as `2.5.29.17`. */
export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = rest.flatMap((arc) => {
    const digits = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    return digits;
  });
  return tagged(0x06, Buffer.of(first * 40 + second, ...bytes));
}

/** A GeneralizedTime. */
export function time(at: Date): Buffer {
  return tagged(0x18, Buffer.from(`${at.toISOString().replaceAll(/[-:T]|\.\d+Z/g, '')}Z`));
}

/** Number `number` of a choice or of optional fields; constructed unless it is said otherwise. */
export function context(number: number, content: Buffer, constructed = true): Buffer {
  return tagged((constructed ? 0xa0 : 0x80) | number, content);
}

export function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length: number[] = [];
  for (let left = content.length; left > 0; left >>= 8) length.unshift(left & 0xff);
  const header = content.length < 0x80 ? [tag, content.length] : [tag, 0x80 | length.length, ...length];
  return Buffer.concat([Buffer.from(header), content]);
}
