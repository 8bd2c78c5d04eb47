/** Encodes the parts of DER that X.509 certificates of tests use. */

export const sequence = (...parts: readonly Buffer[]) => element(0x30, ...parts);
export const octets = (...parts: readonly Buffer[]) => element(0x04, ...parts);
export const bits = (bytes: Buffer) => element(0x03, Buffer.of(0), bytes);
export const utf8 = (text: string) => element(0x0c, Buffer.from(text));
export const ia5 = (text: string) => element(0x16, Buffer.from(text));
export const encodeTrue = () => element(0x01, Buffer.of(0xff));

/** Encodes a safe integer that is not negative. */
export function integer(value: number): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
  return element(0x02, (bytes[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
}

/** Encodes an object identifier such as `2.5.29.17`. */
export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = rest.flatMap((arc) => {
    const digits = [arc & 0x7f];
    for (let remaining = arc >> 7; remaining > 0; remaining >>= 7) digits.unshift((remaining & 0x7f) | 0x80);
    return digits;
  });
  return element(0x06, Buffer.of(first * 40 + second, ...bytes));
}

/** Encodes a GeneralizedTime. */
export function time(at: Date): Buffer {
  return element(0x18, Buffer.from(`${at.toISOString().replaceAll(/[-:T]|\.\d+Z/g, '')}Z`));
}

/** Encodes alternative `number` of a choice, or the optional field with this number. */
export function context(number: number, content: Buffer, constructed = true): Buffer {
  return element((constructed ? 0xa0 : 0x80) | number, content);
}

export function element(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length: number[] = [];
  for (let remaining = content.length; remaining > 0; remaining >>= 8) length.unshift(remaining & 0xff);
  const header = content.length < 0x80 ? [tag, content.length] : [tag, 0x80 | length.length, ...length];
  return Buffer.concat([Buffer.from(header), content]);
}
