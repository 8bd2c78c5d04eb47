import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import macaroon from 'macaroon';
import { sampleSize } from '#testing';
import { decodeMacaroon, encodeMacaroon, signMacaroon } from './macaroon.ts';

const CASES = sampleSize(6_000, 300);
const anyBytes = (maxLength: number) => fc.uint8Array({ minLength: 1, maxLength }).map((bytes) => Buffer.from(bytes));
const anyRootKey = anyBytes(40);
const anyParts = fc.record({
  location: fc.string({ maxLength: 300 }),
  identifier: anyBytes(300),
  caveats: fc.array(
    fc.string({ minLength: 1, maxLength: 300 }).map((condition) => Buffer.from(condition)),
    { maxLength: 4 },
  ),
});

function create(rootKey: Buffer, parts: { location: string; identifier: Buffer; caveats: Buffer[] }): Buffer {
  return encodeMacaroon({ ...parts, signature: signMacaroon(rootKey, parts.identifier, parts.caveats) });
}

/** @returns the identifier and the conditions of a macaroon that the library verifies */
function verifyWithLibrary(bytes: Buffer, rootKey: Buffer) {
  try {
    const conditions: string[] = [];
    const found = macaroon.importMacaroon(bytes);
    found.verify(rootKey, (condition) => {
      conditions.push(condition);
      return null;
    });
    return { identifier: Buffer.from(found.identifier).toString('hex'), conditions };
  } catch {
    return undefined; // the library throws for every invalid macaroon
  }
}

function verify(bytes: Buffer, rootKey: Buffer) {
  const found = decodeMacaroon(bytes);
  if (!found?.signature.equals(signMacaroon(rootKey, found.identifier, found.caveats))) return undefined;
  return { identifier: found.identifier.toString('hex'), conditions: found.caveats.map(String) };
}

test('writes what the library verifies, and reads it again', () => {
  const rule = fc.property(anyRootKey, anyParts, (rootKey, parts) => {
    const bytes = create(rootKey, parts);
    const expected = { identifier: parts.identifier.toString('hex'), conditions: parts.caveats.map(String) };
    expect(verifyWithLibrary(bytes, rootKey)).toEqual(expected);
    expect(verify(bytes, rootKey)).toEqual(expected);
    expect(decodeMacaroon(bytes)?.location).toBe(parts.location);
  });
  fc.assert(rule, { numRuns: CASES });
});

test('accepts no changed macaroon that the library rejects', () => {
  const rule = fc.property(
    anyRootKey,
    anyParts,
    fc.nat(),
    fc.nat(255),
    fc.boolean(),
    (rootKey, parts, at, byte, cut) => {
      const bytes = create(rootKey, parts);
      const position = at % bytes.length;
      const changed = cut ? bytes.subarray(0, position) : Buffer.from(bytes);
      if (!cut) changed[position] = byte;
      const found = verify(changed, rootKey);
      if (found) expect(verifyWithLibrary(changed, rootKey)).toEqual(found);
    },
  );
  fc.assert(rule, { numRuns: CASES });
});

test.each([
  ['nothing', Buffer.alloc(0)],
  ['another version', Buffer.of(1)],
  ['only lengths', Buffer.alloc(4_096, 0xff)],
  ['empty fields', Buffer.alloc(4_096, 0x02)],
])('decodes %s as undefined', (_, bytes) => {
  expect(decodeMacaroon(bytes)).toBeUndefined();
});
