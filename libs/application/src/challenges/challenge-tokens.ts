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
    this.rootKeys = secrets.keysFor('countinghouse L402 tokens');
  }

  /** Standard base64 of a macaroon of version 2, as all clients expect it. */
  tokenOf({ id, paymentHash, request, usableUntil }: ChallengeTokenClaims, location: string): string {
    const version = Buffer.alloc(VERSION_BYTES);
    const identifier = Buffer.concat([version, Buffer.from(paymentHash, 'hex'), Buffer.from(id, 'base64url')]);
    const token = macaroon.newMacaroon({ version: 2, identifier, location, rootKey: this.rootKeys[0] as Uint8Array });
    const conditions = conditionsOf({ request, usableUntil });
    for (const condition of conditions) token.addFirstPartyCaveat(condition);
    return written({ location, identifier, conditions, signature: token.signature }).toString('base64');
  }

  /** What a token says that was made here; undefined for any other. Nothing is looked up for it. */
  read(text: string): DecodedToken | undefined {
    if (text.length > MAX_CHARACTERS || !BASE64.test(text)) return undefined;
    for (const rootKey of this.rootKeys) {
      const token = verified(text, rootKey);
      if (token) return token;
    }
    return undefined;
  }
}

function verified(text: string, rootKey: Uint8Array): DecodedToken | undefined {
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
const FIELD = { end: 0, location: 1, identifier: 2, signature: 6 } as const;

interface Written {
  readonly location: string;
  readonly identifier: Uint8Array;
  readonly conditions: readonly string[];
  readonly signature: Uint8Array;
}

/** The library's own `exportBinary` doubles its buffer with each field that it writes: a token would take a hundred megabytes. */
function written({ location, identifier, conditions, signature }: Written): Buffer {
  const end = Buffer.of(FIELD.end);
  return Buffer.concat([
    Buffer.of(FORMAT),
    ...[field(FIELD.location, Buffer.from(location)), field(FIELD.identifier, identifier), end],
    ...conditions.flatMap((each) => [field(FIELD.identifier, Buffer.from(each)), end]),
    ...[end, field(FIELD.signature, signature)],
  ]);
}

function field(type: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(type, ...varint(bytes.length)), bytes]);
}

/** Seven bits in each byte, the lowest first. */
function varint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

/** Whether a token is for the challenge with these terms, and says nothing that we do not: a holder may add conditions. */
export function matchesChallenge({ id, paymentHash, conditions }: DecodedToken, terms: ChallengeTokenClaims): boolean {
  const ours = conditionsOf(terms);
  return id === terms.id && paymentHash === terms.paymentHash && conditions.every((each) => ours.includes(each));
}

function conditionsOf({
  request,
  usableUntil,
}: Pick<ChallengeTokenClaims, 'request' | 'usableUntil'>): readonly string[] {
  return [`request_hash=${request}`, `expires_at=${Math.floor(usableUntil / 1_000)}`];
}
