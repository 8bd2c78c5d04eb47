/** Verifies the proof of payment that a request presents in its headers. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { ChallengeIssued } from '#domain';
import type { Clock } from '../clock.ts';
import type { Secrets } from '../secrets.ts';
import type { Streams } from '../streams.ts';
import {
  CHALLENGE_ID,
  CHALLENGE_INTENT,
  CHALLENGE_METHOD,
  type ChallengeParameters,
  deriveChallengeKeys,
  toChallengeId,
  toChallengeStreamId,
} from './challenge-ids.ts';
import { type ChallengeTokens, type DecodedToken, matchesChallenge } from './challenge-tokens.ts';
import { describeQuery, formatExpiry } from './issue-challenge.ts';

/** A challenge as its client sends it back; clients may omit members. */
export interface EchoedChallenge extends Partial<ChallengeParameters> {
  readonly id: string;
  readonly description?: string | undefined;
}

/**
 * The proof that a request presents: the preimage of the payment, with the complete challenge, its token or its id.
 */
export interface PresentedProof {
  readonly challenge: EchoedChallenge | { readonly tokens: readonly string[] };
  /** 64 hexadecimal digits. */
  readonly preimage: string;
}

/** Why a proof is not accepted. */
export type InvalidProofReason = 'malformed' | 'unknown' | 'method' | 'expired' | 'unpaid' | 'other_request' | 'used';

/** A challenge that is known to be paid. Its stream decides what the payment can still be used for. */
export interface VerifiedProof {
  readonly id: string;
  /** Id of the challenge's stream. */
  readonly challengeId: string;
  readonly issued: ChallengeIssued['data'];
}

interface ProofMatch {
  readonly proof: VerifiedProof;
  readonly isPaid: boolean;
}

export class ProofVerifier {
  private readonly keys: readonly Buffer[];

  constructor(
    private readonly challenges: Streams['challenges'],
    private readonly tokens: ChallengeTokens,
    secrets: Secrets,
    private readonly clock: Clock,
  ) {
    this.keys = deriveChallengeKeys(secrets);
  }

  /**
   * Verifies that a proof is valid and has not expired.
   * @param realm the expected realm of the challenge: the host
   */
  async verify(presented: PresentedProof, realm: string): Promise<VerifiedProof | InvalidProofReason> {
    const result = await this.findProof(presented, realm);
    if (typeof result === 'string') return result;
    const { proof, isPaid } = result;
    const { expiresAt, usableUntil } = proof.issued;
    if (this.clock.now() > (isPaid ? usableUntil : expiresAt)) return 'expired';
    return isPaid ? proof : 'unpaid';
  }

  /** Verifies a proof that may have expired: its payer may see what became of the payment. */
  async verifyIgnoringExpiry(presented: PresentedProof, realm: string): Promise<VerifiedProof | InvalidProofReason> {
    const result = await this.findProof(presented, realm);
    if (typeof result === 'string') return result;
    return result.isPaid ? result.proof : 'unpaid';
  }

  /** Finds the challenge that a proof names, and checks whether the preimage is that of its payment. */
  private async findProof(
    { challenge, preimage }: PresentedProof,
    realm: string,
  ): Promise<ProofMatch | InvalidProofReason> {
    const candidate = 'tokens' in challenge ? this.decodeFirst(challenge.tokens) : challenge;
    if (candidate === undefined || !CHALLENGE_ID.test(candidate.id)) return 'unknown';
    if ('method' in candidate && candidate.method !== undefined && candidate.method !== CHALLENGE_METHOD)
      return 'method';
    const challengeId = toChallengeStreamId(candidate.id);
    const { issued } = await this.challenges.read(challengeId);
    if (!issued || issued.id !== candidate.id || !this.matchesIssued(candidate, issued, realm)) return 'unknown';
    return { proof: { id: candidate.id, challengeId, issued }, isPaid: isPreimageFor(preimage, issued.paymentHash) };
  }

  /** Returns the first token that names a challenge: one of our tokens, or the id itself. */
  private decodeFirst(tokens: readonly string[]): EchoedChallenge | DecodedToken | undefined {
    for (const token of tokens) {
      const decoded = CHALLENGE_ID.test(token) ? { id: token } : this.tokens.verify(token);
      if (decoded) return decoded;
    }
    return undefined;
  }

  /**
   * Whether the candidate matches the issued challenge. A parameter that the client omits is assumed to have the
   * expected value. If the client sends `request`, the id decides: it is an HMAC over all parameters.
   */
  private matchesIssued(
    candidate: EchoedChallenge | DecodedToken,
    issued: ChallengeIssued['data'],
    expectedRealm: string,
  ): boolean {
    const { id, request, paymentHash } = issued;
    if ('conditions' in candidate)
      return matchesChallenge(candidate, { id, paymentHash, request, usableUntil: Date.parse(issued.usableUntil) });
    if (candidate.description !== undefined && candidate.description !== describeQuery(issued.query)) return false;
    const expected = {
      realm: expectedRealm,
      method: CHALLENGE_METHOD,
      intent: CHALLENGE_INTENT,
      expires: formatExpiry(issued),
    };
    const {
      realm = expected.realm,
      method = expected.method,
      intent = expected.intent,
      expires = expected.expires,
    } = candidate;
    const { digest = '', opaque = '' } = candidate;
    if (candidate.request !== undefined) {
      const parameters = { realm, method, intent, request: candidate.request, expires, digest, opaque };
      return this.keys.some((key) => toChallengeId(parameters, key) === id);
    }
    const isMatch = realm === expected.realm && method === expected.method && intent === expected.intent;
    return isMatch && expires === expected.expires && digest === '' && opaque === '';
  }
}

/** Whether the SHA-256 hash of the preimage is the payment hash. */
function isPreimageFor(preimage: string, paymentHash: string): boolean {
  const hash = createHash('sha256').update(Buffer.from(preimage, 'hex')).digest();
  const due = Buffer.from(paymentHash, 'hex');
  return hash.length === due.length && timingSafeEqual(hash, due);
}
