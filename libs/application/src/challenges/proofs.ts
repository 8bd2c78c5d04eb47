/** Whether what a request shows proves that it is paid for, as far as its headers say that. */
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

/** A challenge as its client sends it back: clients leave members out. */
export interface EchoedChallenge extends Partial<ChallengeParameters> {
  readonly id: string;
  readonly description?: string | undefined;
}

/** What a request shows: the challenge, whole or by a token or its id, and the preimage of its payment. */
export interface PresentedProof {
  readonly challenge: EchoedChallenge | { readonly tokens: readonly string[] };
  /** 64 hexadecimal digits. */
  readonly preimage: string;
}

/** What is wrong with a proof. */
export type InvalidProofReason = 'malformed' | 'unknown' | 'method' | 'expired' | 'unpaid' | 'other_request' | 'used';

/** A challenge that is surely paid. What its payment can still be used for, its stream decides. */
export interface VerifiedProof {
  readonly id: string;
  /** Of its stream. */
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
   * Whether a proof is right, and can still be used.
   * @param realm the host that a challenge of ours names where it is not sent back
   */
  async verify(presented: PresentedProof, realm: string): Promise<VerifiedProof | InvalidProofReason> {
    const result = await this.findProof(presented, realm);
    if (typeof result === 'string') return result;
    const { proof, isPaid } = result;
    const { expiresAt, usableUntil } = proof.issued;
    if (this.clock.now() > (isPaid ? usableUntil : expiresAt)) return 'expired';
    return isPaid ? proof : 'unpaid';
  }

  /** The same, also of what can be used no more: its payer may see what became of it. */
  async verifyIgnoringExpiry(presented: PresentedProof, realm: string): Promise<VerifiedProof | InvalidProofReason> {
    const result = await this.findProof(presented, realm);
    if (typeof result === 'string') return result;
    return result.isPaid ? result.proof : 'unpaid';
  }

  /** The challenge that is named, and whether the preimage is that of its payment. */
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

  /** The first of the tokens that names a challenge: one of ours, or the id itself. */
  private decodeFirst(tokens: readonly string[]): EchoedChallenge | DecodedToken | undefined {
    for (const token of tokens) {
      const decoded = CHALLENGE_ID.test(token) ? { id: token } : this.tokens.verify(token);
      if (decoded) return decoded;
    }
    return undefined;
  }

  /** Of what is not sent back, ours stands: the id itself says all of it. */
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

/** Whether it is what a payment hash was made of. */
function isPreimageFor(preimage: string, paymentHash: string): boolean {
  const hash = createHash('sha256').update(Buffer.from(preimage, 'hex')).digest();
  const due = Buffer.from(paymentHash, 'hex');
  return hash.length === due.length && timingSafeEqual(hash, due);
}
