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
export type InvalidProofReason = 'malformed' | 'unknown' | 'method' | 'expired' | 'unpaid' | 'other request' | 'used';

/** A challenge that is surely paid. What its payment can still be used for, its stream decides. */
export interface VerifiedProof {
  readonly id: string;
  /** Of its stream. */
  readonly challengeId: string;
  readonly issued: ChallengeIssued['data'];
}

interface Found {
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
  async check(shown: PresentedProof, realm: string): Promise<VerifiedProof | InvalidProofReason> {
    const found = await this.find(shown, realm);
    if (typeof found === 'string') return found;
    const { proof, isPaid } = found;
    const { expiresAt, usableUntil } = proof.issued;
    if (this.clock.now() > (isPaid ? usableUntil : expiresAt)) return 'expired';
    return isPaid ? proof : 'unpaid';
  }

  /** The same, also of what can be used no more: its payer may see what became of it. */
  async known(shown: PresentedProof, realm: string): Promise<VerifiedProof | InvalidProofReason> {
    const found = await this.find(shown, realm);
    if (typeof found === 'string') return found;
    return found.isPaid ? found.proof : 'unpaid';
  }

  /** The challenge that is named, and whether the preimage is that of its payment. */
  private async find({ challenge, preimage }: PresentedProof, realm: string): Promise<Found | InvalidProofReason> {
    const named = 'tokens' in challenge ? this.named(challenge.tokens) : challenge;
    if (named === undefined || !CHALLENGE_ID.test(named.id)) return 'unknown';
    if ('method' in named && named.method !== undefined && named.method !== CHALLENGE_METHOD) return 'method';
    const challengeId = toChallengeStreamId(named.id);
    const { issued } = await this.challenges.read(challengeId);
    if (!issued || issued.id !== named.id || !this.isSame(named, issued, realm)) return 'unknown';
    return { proof: { id: named.id, challengeId, issued }, isPaid: isPreimageOf(preimage, issued.paymentHash) };
  }

  /** The first of the tokens that names a challenge: one of ours, or the id itself. */
  private named(tokens: readonly string[]): EchoedChallenge | DecodedToken | undefined {
    for (const token of tokens) {
      const found = CHALLENGE_ID.test(token) ? { id: token } : this.tokens.read(token);
      if (found) return found;
    }
    return undefined;
  }

  /** Of what is not sent back, ours stands: the id itself says all of it. */
  private isSame(named: EchoedChallenge | DecodedToken, issued: ChallengeIssued['data'], ourRealm: string): boolean {
    const { id, request, paymentHash } = issued;
    if ('conditions' in named)
      return matchesChallenge(named, { id, paymentHash, request, usableUntil: Date.parse(issued.usableUntil) });
    if (named.description !== undefined && named.description !== describeQuery(issued.query)) return false;
    const ours = { realm: ourRealm, method: CHALLENGE_METHOD, intent: CHALLENGE_INTENT, expires: formatExpiry(issued) };
    const { realm = ours.realm, method = ours.method, intent = ours.intent, expires = ours.expires } = named;
    const { digest = '', opaque = '' } = named;
    if (named.request !== undefined) {
      const said = { realm, method, intent, request: named.request, expires, digest, opaque };
      return this.keys.some((key) => toChallengeId(said, key) === id);
    }
    const isOurs = realm === ours.realm && method === ours.method && intent === ours.intent;
    return isOurs && expires === ours.expires && digest === '' && opaque === '';
  }
}

/** Whether it is what a payment hash was made of. */
function isPreimageOf(preimage: string, paymentHash: string): boolean {
  const hash = createHash('sha256').update(Buffer.from(preimage, 'hex')).digest();
  const due = Buffer.from(paymentHash, 'hex');
  return hash.length === due.length && timingSafeEqual(hash, due);
}
