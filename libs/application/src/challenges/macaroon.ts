/**
 * Macaroons of less than 16 KiB with first-party caveats in version 2 of the binary format:
 * https://github.com/rescrv/libmacaroons/blob/master/doc/format.txt. A specification of the signature is in
 * https://research.google/pubs/macaroons-cookies-with-contextual-caveats-for-decentralized-authorization-in-the-cloud/.
 */
import { createHmac } from 'node:crypto';

const FORMAT = 2;
const FIELDS = { end: 0, location: 1, identifier: 2, signature: 6 } as const;
const SIGNATURE_BYTES = 32;
/** The fixed key with which implementations derive the first signing key from a root key. */
const KEY_GENERATOR = 'macaroons-key-generator';

export interface Macaroon {
  /** A hint for its holder, which is not signed. */
  readonly location: string;
  readonly identifier: Buffer;
  readonly caveats: readonly Buffer[];
  readonly signature: Buffer;
}

/** @returns the signature that a macaroon with this identifier and these caveats must have */
export function signMacaroon(rootKey: Uint8Array, identifier: Buffer, caveats: readonly Buffer[]): Buffer {
  const sign = (key: Uint8Array | string, data: Uint8Array) => createHmac('sha256', key).update(data).digest();
  return [identifier, ...caveats].reduce(sign, sign(KEY_GENERATOR, rootKey));
}

export function encodeMacaroon({ location, identifier, caveats, signature }: Macaroon): Buffer {
  const end = Buffer.of(FIELDS.end);
  return Buffer.concat([
    Buffer.of(FORMAT),
    encodeField(FIELDS.location, Buffer.from(location)),
    encodeField(FIELDS.identifier, identifier),
    end,
    ...caveats.flatMap((caveat) => [encodeField(FIELDS.identifier, caveat), end]),
    end,
    encodeField(FIELDS.signature, signature),
  ]);
}

/** @returns undefined if the bytes are not what `encodeMacaroon` writes, for instance with a third party's caveat */
export function decodeMacaroon(bytes: Buffer): Macaroon | undefined {
  const fields = [...readFields(bytes)];
  const select = (type: number) => fields.filter((field) => field.type === type).map(({ value }) => value);
  const [location] = select(FIELDS.location);
  const [identifier, ...caveats] = select(FIELDS.identifier);
  const [signature] = select(FIELDS.signature);
  if (!location || !identifier || signature?.length !== SIGNATURE_BYTES) return undefined;
  const macaroon = { location: location.toString(), identifier, caveats, signature };
  return encodeMacaroon(macaroon).equals(bytes) ? macaroon : undefined;
}

/** Reads fields of any type in any order. The values of invalid bytes are arbitrary. */
function* readFields(bytes: Buffer): Generator<{ readonly type: number; readonly value: Buffer }> {
  let at = 1;
  while (at < bytes.length) {
    const type = bytes.readUInt8(at++);
    if (type === FIELDS.end) continue;
    // A varint of at most 14 bits: the lowest seven in the first byte.
    const [low = 0, high = 0] = bytes.subarray(at);
    const length = low < 0x80 ? low : (low & 0x7f) | (high << 7);
    at += low < 0x80 ? 1 : 2;
    yield { type, value: bytes.subarray(at, at + length) };
    at += length;
  }
}

function encodeField(type: number, value: Uint8Array): Buffer {
  const length = value.length < 0x80 ? [value.length] : [(value.length & 0x7f) | 0x80, value.length >>> 7];
  return Buffer.concat([Buffer.of(type, ...length), value]);
}
