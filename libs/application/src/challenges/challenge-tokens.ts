/**
 * L402 tokens: macaroons that name a challenge. The claims of a token are compared with the challenge's own event. So a
 * token proves no more than the id of the challenge does; the preimage of the payment is the proof.
 */
import macaroon from 'macaroon';
import type { Secrets } from '../secrets.ts';

/** Version of the binary format of macaroons. */
const FORMAT = 2;
/**
 * The identifier of an L402 token: version 0, the payment hash, and 32 bytes that are the challenge id
 * (https://github.com/lightninglabs/L402).
 */
const VERSION_BYTES = 2;
const HASH_BYTES = 32;
/** Our tokens have about 400 characters, more if the host name is long. A text beyond this limit is not decoded. */
const MAX_CHARACTERS = 4 * 1024;
const BASE64 = /^[\w+/-]+={0,2}$/;

export interface ChallengeTokenClaims {
  /** Id of the challenge. */
  readonly id: string;
  /** Hexadecimal. */
  readonly paymentHash: string;
  /** Digest of the one request that the token is valid for. */
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
  /** The first key signs new tokens. */
  private readonly rootKeys: readonly Uint8Array[];

  constructor(secrets: Secrets) {
    this.rootKeys = secrets.derivePurposeKeys('countinghouse L402 tokens');
  }

  /** Returns a macaroon of version 2 in standard base64, as clients expect it. */
  create({ id, paymentHash, request, usableUntil }: ChallengeTokenClaims, location: string): string {
    const version = Buffer.alloc(VERSION_BYTES);
    const identifier = Buffer.concat([version, Buffer.from(paymentHash, 'hex'), Buffer.from(id, 'base64url')]);
    const token = macaroon.newMacaroon({ version: 2, identifier, location, rootKey: this.rootKeys[0] as Uint8Array });
    const conditions = toConditions({ request, usableUntil });
    for (const condition of conditions) token.addFirstPartyCaveat(condition);
    return serializeMacaroon({ location, identifier, conditions, signature: token.signature }).toString('base64');
  }

  /**
   * Returns the content of a token that this installation created, with any conditions that a holder has added;
   * undefined for any other token. Reads no storage.
   */
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
    return undefined; // the library throws for every invalid token
  }
}

/** Field types of the binary format, version 2: https://github.com/rescrv/libmacaroons/blob/master/doc/format.txt */
const MACAROON_FIELDS = { end: 0, location: 1, identifier: 2, signature: 6 } as const;

interface MacaroonParts {
  readonly location: string;
  readonly identifier: Uint8Array;
  readonly conditions: readonly string[];
  readonly signature: Uint8Array;
}

/**
 * Serialises a macaroon. The library's own `exportBinary` doubles its buffer with each write, so a token would need a
 * hundred megabytes.
 */
function serializeMacaroon({ location, identifier, conditions, signature }: MacaroonParts): Buffer {
  const end = Buffer.of(MACAROON_FIELDS.end);
  return Buffer.concat([
    Buffer.of(FORMAT),
    encodeField(MACAROON_FIELDS.location, Buffer.from(location)),
    encodeField(MACAROON_FIELDS.identifier, identifier),
    end,
    ...conditions.flatMap((condition) => [encodeField(MACAROON_FIELDS.identifier, Buffer.from(condition)), end]),
    end,
    encodeField(MACAROON_FIELDS.signature, signature),
  ]);
}

function encodeField(type: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(type, ...encodeVarint(bytes.length)), bytes]);
}

/** Encodes seven bits in each byte, the lowest first. */
function encodeVarint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...encodeVarint(value >>> 7)];
}

/** Whether a token is for the challenge with these terms, and has no conditions other than theirs. */
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
