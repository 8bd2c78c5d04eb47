/**
 * Tokens of L402: macaroons that name a challenge. What one says is held against the challenge's own fact, so a token is as
 * good as the id of the challenge, and its payment's preimage counts.
 */
import macaroon from 'macaroon';
import type { Secrets } from '../secrets.ts';

/** The identifier: version 0, the payment hash, 32 bytes of our own (https://github.com/lightninglabs/L402). */
const FORMAT = 2;
const VERSION_BYTES = 2;
const HASH_BYTES = 32;
/** Ours have some 400; clients may add conditions. */
const MAX_CHARACTERS = 4 * 1024;
const BASE64 = /^[\w+/-]+={0,2}$/;

export interface ChallengeTokenClaims {
  /** Of the challenge. */
  readonly id: string;
  /** In hexadecimal. */
  readonly paymentHash: string;
  /** Digest of the one request that it is good for. */
  readonly request: string;
  /** Milliseconds since 1970. */
  readonly usableUntil: number;
}

export interface DecodedToken {
  readonly id: string;
  readonly paymentHash: string;
  readonly conditions: readonly string[];
}

export class ChallengeTokens {
  /** What is made is signed with the first. */
  private readonly rootKeys: readonly Uint8Array[];

  constructor(secrets: Secrets) {
    this.rootKeys = secrets.derivePurposeKeys('countinghouse L402 tokens');
  }

  /** Standard base64 of a macaroon of version 2, as all clients expect it. */
  create({ id, paymentHash, request, usableUntil }: ChallengeTokenClaims, location: string): string {
    const version = Buffer.alloc(VERSION_BYTES);
    const identifier = Buffer.concat([version, Buffer.from(paymentHash, 'hex'), Buffer.from(id, 'base64url')]);
    const token = macaroon.newMacaroon({ version: 2, identifier, location, rootKey: this.rootKeys[0] as Uint8Array });
    const conditions = toConditions({ request, usableUntil });
    for (const condition of conditions) token.addFirstPartyCaveat(condition);
    return serializeMacaroon({ location, identifier, conditions, signature: token.signature }).toString('base64');
  }

  /** What a token says that was made here; undefined for any other. Nothing is looked up for it. */
  verify(text: string): DecodedToken | undefined {
    if (text.length > MAX_CHARACTERS || !BASE64.test(text)) return undefined;
    for (const rootKey of this.rootKeys) {
      const token = verifyToken(text, rootKey);
      if (token) return token;
    }
    return undefined;
  }
}

function verifyToken(text: string, rootKey: Uint8Array): DecodedToken | undefined {
  const conditions: string[] = [];
  try {
    const token = macaroon.importMacaroon(Buffer.from(text, 'base64'));
    token.verify(rootKey, (condition) => {
      conditions.push(condition);
      return null;
    });
    const identifier = Buffer.from(token.identifier);
    const [hash, id] = [VERSION_BYTES, VERSION_BYTES + HASH_BYTES];
    return { paymentHash: identifier.toString('hex', hash, id), id: identifier.toString('base64url', id), conditions };
  } catch {
    return undefined; // the library throws for whatever is not as it should be
  }
}

/** Of the binary format, version 2: https://github.com/rescrv/libmacaroons/blob/master/doc/format.txt */
const MACAROON_FIELDS = { end: 0, location: 1, identifier: 2, signature: 6 } as const;

interface MacaroonParts {
  readonly location: string;
  readonly identifier: Uint8Array;
  readonly conditions: readonly string[];
  readonly signature: Uint8Array;
}

/** The library's own `exportBinary` doubles its buffer with each field that it writes: a token would take a hundred megabytes. */
function serializeMacaroon({ location, identifier, conditions, signature }: MacaroonParts): Buffer {
  const end = Buffer.of(MACAROON_FIELDS.end);
  return Buffer.concat([
    Buffer.of(FORMAT),
    ...[
      encodeField(MACAROON_FIELDS.location, Buffer.from(location)),
      encodeField(MACAROON_FIELDS.identifier, identifier),
      end,
    ],
    ...conditions.flatMap((condition) => [encodeField(MACAROON_FIELDS.identifier, Buffer.from(condition)), end]),
    ...[end, encodeField(MACAROON_FIELDS.signature, signature)],
  ]);
}

function encodeField(type: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(type, ...encodeVarint(bytes.length)), bytes]);
}

/** Seven bits in each byte, the lowest first. */
function encodeVarint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...encodeVarint(value >>> 7)];
}

/** Whether a token is for the challenge with these terms, and says nothing that we do not: a holder may add conditions. */
export function matchesChallenge({ id, paymentHash, conditions }: DecodedToken, terms: ChallengeTokenClaims): boolean {
  const expected = toConditions(terms);
  return (
    id === terms.id &&
    paymentHash === terms.paymentHash &&
    conditions.every((condition) => expected.includes(condition))
  );
}

function toConditions({
  request,
  usableUntil,
}: Pick<ChallengeTokenClaims, 'request' | 'usableUntil'>): readonly string[] {
  return [`request_hash=${request}`, `expires_at=${Math.floor(usableUntil / 1_000)}`];
}
