import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { FastifyRequest } from 'fastify';
import { parseCredential } from './credentials.ts';

const PREIMAGE = '0f'.repeat(32);
const ID = 'A'.repeat(43);

function shown(...lines: readonly string[]) {
  const headersDistinct = lines.length > 0 ? { authorization: lines } : {};
  return parseCredential({
    headers: { authorization: lines[0] },
    raw: { headersDistinct },
  } as unknown as FastifyRequest);
}

const payment = (value: unknown) => `Payment ${Buffer.from(JSON.stringify(value)).toString('base64url')}`;
const whole = { challenge: { id: ID }, payload: { preimage: PREIMAGE } };

test('parses any header without an error', () => {
  const scheme = fc.constantFrom('Payment', 'L402', 'LSAT', 'Bearer', 'Basic', '', 'payment ', 'L402:');
  const rest = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.base64String().map((text) => `${text}:${PREIMAGE}`),
    fc.json().map((text) => Buffer.from(text).toString('base64url')),
    fc
      .record({ challenge: fc.anything(), payload: fc.anything() })
      .map((value) => Buffer.from(JSON.stringify(value) ?? '').toString('base64url')),
  );
  const line = fc.tuple(scheme, fc.constantFrom(' ', '  ', ', ', ''), rest).map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.array(line, { maxLength: 3 }), (lines) => {
      const found = shown(...lines);
      expect(['object', 'string']).toContain(typeof found);
      if (typeof found === 'object') expect(found.preimage).toMatch(/^[0-9a-f]{64}$/);
    }),
    { numRuns: 2_000, seed: 20_261_122 },
  );
});

test('rejects a credential with an added character, apart from padding and surrounding spaces', () => {
  const credential = payment(whole).slice('Payment '.length);
  expect(shown(`Payment ${credential}`)).toMatchObject({ preimage: PREIMAGE });
  fc.assert(
    fc.property(fc.nat(credential.length), fc.constantFrom(' ', '\n', '=', '+', '/', '.', '%'), (at, more) => {
      const other = `${credential.slice(0, at)}${more}${credential.slice(at)}`;
      const isPadding = more === '=' && at === credential.length && other.length % 4 === 0;
      const isSpace = other.trim() === credential;
      if (!isPadding && !isSpace) expect(shown(`Payment ${other}`)).toBe('malformed');
    }),
    { numRuns: 500, seed: 20_261_122 },
  );
});

test.each([
  ['x-credit-id', '', 'none'],
  ['x-credit-id', 'a', 'account'],
  ['api-key', '', 'account'],
])('parses a request with only the header %s: "%s" as %s', (name, value, expected) => {
  const request = { headers: { [name]: value }, raw: { headersDistinct: {} } };
  expect(parseCredential(request as unknown as FastifyRequest)).toBe(expected);
});

test.each<[string, readonly string[], unknown]>([
  ['no line', [], 'none'],
  ['an account and a proof', [payment(whole), 'Bearer sk-x'], 'account'],
  [
    'two proofs, one of them valid',
    ['Payment x', `L402 ${ID}:${PREIMAGE}`],
    { challenge: { tokens: [ID] }, preimage: PREIMAGE },
  ],
  [
    'two proofs in one line',
    [`LSAT a,b:${PREIMAGE}, L402 ${ID}:${PREIMAGE}`],
    { challenge: { tokens: ['a', 'b'] }, preimage: PREIMAGE },
  ],
  ['an empty token', [`L402 :${PREIMAGE}`], 'malformed'],
  [
    'unknown fields of a challenge',
    [payment({ ...whole, challenge: { id: ID, more: 1 } })],
    { challenge: { id: ID }, preimage: PREIMAGE },
  ],
  ['an array', [payment([whole])], 'malformed'],
])('parses %s', (_, lines, expected) => {
  expect(shown(...lines)).toEqual(expected);
});
