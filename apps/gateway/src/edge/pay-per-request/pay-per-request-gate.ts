/**
 * The edge for callers without an account, who pay for single requests to operations with `payPerRequest`. Their proof
 * is verified before the body is read. A challenge has the price that every caller is quoted for the same request.
 */
import type { CommandBus } from '@nestjs/cqrs';
import canonicalize from 'canonicalize';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  canIssueChallenges,
  type InvalidProofReason,
  IssueChallenge,
  type Payer,
  type PaymentMethods,
  PaymentRequiredError,
  type ProofVerifier,
  QuoteOnlyPayer,
  type RateLimiter,
  type Secrets,
  UpstreamError,
  type VerifiedProof,
} from '#application';
import type { RejectionCode } from '#domain';
import { createRootCause, Rejection, ZERO_USD } from '#kernel';
import { BadRequestError, UnauthorizedError } from '../errors/errors.ts';
import type { CredentialLookups } from '../limits/credential-lookups.ts';
import { toNetwork } from '../network/client-addresses.ts';
import type { PublicBaseUrl } from '../network/public-base-url.ts';
import { type ChallengeReason, sendChallenge } from './challenge-response.ts';
import { parseCredential } from './credentials.ts';

/** A caller without an account: one with a valid proof, or one that receives a challenge for the given reason. */
export type AnonymousCaller = { readonly proof: VerifiedProof } | { readonly reason: ChallengeReason };

declare module 'fastify' {
  interface FastifyRequest {
    /** Result of `identify` or `identifyByProof`, set before the body is read on routes that use one of them. */
    anonymousCaller: AnonymousCaller | undefined;
  }
}

/** Why a valid proof does not pay, by the code of the rejection. */
const PROOF_ERRORS: Partial<Record<RejectionCode, InvalidProofReason>> = {
  challenge_expired: 'expired',
  challenge_mismatch: 'other_request',
  challenge_used: 'used',
};
const RETRY_AFTER_SECONDS = 5;

/** The proof matches no challenge, or its preimage does not match the payment hash of the challenge. */
class InvalidProofError extends UnauthorizedError {
  constructor(readonly proofError: InvalidProofReason) {
    super('Invalid proof');
  }
}

interface PayPerRequestDependencies {
  readonly lookups: CredentialLookups;
  readonly commands: CommandBus;
  readonly paymentMethods: PaymentMethods;
  readonly proofs: ProofVerifier;
  readonly limits: RateLimiter;
  readonly secrets: Secrets;
  readonly publicBaseUrl: PublicBaseUrl;
}

export class PayPerRequestGate {
  constructor(private readonly dependencies: PayPerRequestDependencies) {}

  /**
   * Identifies an anonymous caller by the headers alone. Returns undefined for a request with the credential of an
   * account, or, without a valid proof, if challenges cannot be issued here.
   * @throws TooManyRequestsError if the address sent too many unpaid requests or too many invalid proofs;
   * StoreUnavailableError if the lookup or the counting failed
   */
  async identify(request: FastifyRequest): Promise<AnonymousCaller | undefined> {
    const credential = parseCredential(request);
    if (credential === 'account') return undefined;
    const checked =
      typeof credential === 'object'
        ? await this.runLookup(request, () => this.dependencies.proofs.verify(credential, this.realm))
        : credential;
    if (typeof checked === 'object') return { proof: checked };
    if (!canIssueChallenges(this.dependencies.paymentMethods)) return undefined;
    await this.count(request);
    return { reason: checked === 'none' ? 'no_proof' : checked };
  }

  /**
   * Identifies a caller by its proof, whatever the payment was used for; undefined without a proof, or with the
   * credential of an account.
   * @throws UnauthorizedError for an invalid proof; TooManyRequestsError if the address sent too many of them;
   * StoreUnavailableError if the lookup or the counting failed
   */
  async identifyByProof(request: FastifyRequest): Promise<AnonymousCaller | undefined> {
    const credential = parseCredential(request);
    if (credential === 'account' || credential === 'none') return undefined;
    const verified =
      credential === 'malformed'
        ? credential
        : await this.runLookup(request, () => this.dependencies.proofs.verifyIgnoringExpiry(credential, this.realm));
    if (typeof verified === 'object') return { proof: verified };
    throw new UnauthorizedError('Invalid proof');
  }

  /**
   * Responds to a validated request with a challenge for its price.
   * @param quote serves the request up to the point at which money is held
   * @throws UnauthorizedError for a free request; TooManyRequestsError beyond the limit of challenges for all callers;
   * UpstreamError if no invoice can be created; StoreUnavailableError if the counting failed; errors of `quote` and
   * `digestRequest`
   */
  async requirePayment(
    reply: FastifyReply,
    reason: ChallengeReason,
    quote: (payer: Payer) => Promise<unknown>,
  ): Promise<void> {
    const { request } = reply;
    const paymentRequired = await capturePaymentRequired(quote);
    if (paymentRequired.price === ZERO_USD)
      throw new UnauthorizedError(
        'This request is free but requires an account: send "Authorization: Bearer <API key>"',
      );
    await this.dependencies.limits.count('challenges');
    const { query, price, priceList } = paymentRequired;
    const terms = { query, price, priceList, request: this.digestRequest(request), realm: this.realm };
    const command = new IssueChallenge(terms, createRootCause('anybody', request.id));
    sendChallenge(reply, await this.dependencies.commands.execute(command).catch(rethrowAsUnavailable), reason);
  }

  /**
   * Responds with a challenge to a request whose valid proof does not pay for it. `identify` has not counted such a
   * request.
   */
  async requireAnotherPayment(
    reply: FastifyReply,
    reason: InvalidProofReason,
    quote: (payer: Payer) => Promise<unknown>,
  ): Promise<void> {
    await this.count(reply.request);
    reply.removeHeader('x-generation-id');
    await this.requirePayment(reply, reason, quote);
  }

  /** Returns why a valid proof did not pay for its request; undefined if the proof did not cause the error. */
  toProofError(error: unknown): InvalidProofReason | undefined {
    return error instanceof Rejection ? PROOF_ERRORS[error.code as RejectionCode] : undefined;
  }

  /**
   * Returns the digest of the request that a payment is bound to. The digest does not depend on the formatting of JSON
   * or on the multipart boundary. The digest is keyed, so it reveals nothing about the request.
   * @throws BadRequestError if the body has no canonical JSON
   */
  digestRequest({ method, url, body }: FastifyRequest): string {
    return this.dependencies.secrets.hashWithOldestKey(
      `request of a payment ${method} ${normalizePath(url)}\n${canonicalizeBody(body)}`,
    );
  }

  /** A proof is a credential: repeated invalid proofs are limited like other invalid credentials. */
  private async runLookup(
    { ip }: FastifyRequest,
    lookup: () => Promise<VerifiedProof | InvalidProofReason>,
  ): Promise<VerifiedProof | InvalidProofReason> {
    try {
      return await this.dependencies.lookups.run(ip, false, async () => {
        const result = await lookup();
        if (result === 'unknown' || result === 'unpaid') throw new InvalidProofError(result);
        return result;
      });
    } catch (error) {
      if (error instanceof InvalidProofError) return error.proofError;
      throw error;
    }
  }

  private count({ ip }: FastifyRequest): Promise<void> {
    return this.dependencies.limits.count('requests without payment of an address', toNetwork(ip));
  }

  private get realm(): string {
    return new URL(this.dependencies.publicBaseUrl.url).host;
  }
}

/** Removes `/v1` from the start of a path, and a trailing slash from its end. The query does not change. */
export function normalizePath(url: string): string {
  return url.replace(/^\/v1(?=\/)/, '').replace(/^([^?]*)\/(?=\?|$)/, '$1');
}

async function capturePaymentRequired(quote: (payer: Payer) => Promise<unknown>): Promise<PaymentRequiredError> {
  try {
    await quote(new QuoteOnlyPayer());
  } catch (error) {
    if (error instanceof PaymentRequiredError) return error;
    throw error;
  }
  throw new Error('an unpaid request was served');
}

function canonicalizeBody(body: unknown): string {
  try {
    return canonicalize(body) ?? '';
  } catch {
    throw new BadRequestError('The body contains numbers or text that JSON cannot represent');
  }
}

/** Rethrows a failure of the payment backend or the exchange rates as 503, because the caller did not cause it. */
function rethrowAsUnavailable(cause: unknown): never {
  if (!(cause instanceof UpstreamError)) throw cause;
  const message = 'Payments are temporarily unavailable';
  throw new UpstreamError('upstream_unavailable', message, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS });
}
