/**
 * L402 tokens: macaroons that name a challenge. The claims of a token are compared with the challenge's own event. So a
 * token proves no more than the id of the challenge does; the preimage of the payment is the proof.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Secrets } from '../secrets.ts';
import { decodeMacaroon, encodeMacaroon, signMacaroon } from './macaroon.ts';

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

  /** Returns a macaroon in standard base64, as clients expect it. */
  create({ id, paymentHash, request, usableUntil }: ChallengeTokenClaims, location: string): string {
    const version = Buffer.alloc(VERSION_BYTES);
    const identifier = Buffer.concat([version, Buffer.from(paymentHash, 'hex'), Buffer.from(id, 'base64url')]);
    const caveats = toConditions({ request, usableUntil }).map((condition) => Buffer.from(condition));
    const signature = signMacaroon(this.rootKeys[0] as Uint8Array, identifier, caveats);
    return encodeMacaroon({ location, identifier, caveats, signature }).toString('base64');
  }

  /**
   * Returns the content of a token that this installation created, with any conditions that a holder has added;
   * undefined for any other token. Reads no storage.
   */
  verify(text: string): DecodedToken | undefined {
    if (text.length > MAX_CHARACTERS || !BASE64.test(text)) return undefined;
    const macaroon = decodeMacaroon(Buffer.from(text, 'base64'));
    if (!macaroon) return undefined;
    const { identifier, caveats, signature } = macaroon;
    const isSigned = this.rootKeys.some((key) => timingSafeEqual(signMacaroon(key, identifier, caveats), signature));
    if (!isSigned) return undefined;
    const [hash, id] = [VERSION_BYTES, VERSION_BYTES + HASH_BYTES];
    return {
      paymentHash: identifier.toString('hex', hash, id),
      id: identifier.toString('base64url', id),
      conditions: caveats.map((caveat) => caveat.toString()),
    };
  }
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
