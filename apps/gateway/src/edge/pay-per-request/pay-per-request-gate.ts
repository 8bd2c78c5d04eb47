/**
 * The door for callers without an account: operations with `challenge` are sold to them by the request. What they show is found
 * before the body is read; what they are asked for is the price at which the same request is quoted to everybody.
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
import { createRootCause, Rejection } from '#kernel';
import { BadRequestError, UnauthorizedError } from '../errors/errors.ts';
import type { CredentialLookups } from '../limits/credential-lookups.ts';
import { toNetwork } from '../network/client-addresses.ts';
import type { PublicBaseUrl } from '../network/public-base-url.ts';
import { type ChallengeReason, sendChallenge } from './challenge-response.ts';
import { parseCredential } from './credentials.ts';

/** A caller without an account: one that has paid for its request, or one to be asked for a payment, and why. */
export type AnonymousCaller = { readonly proof: VerifiedProof } | { readonly reason: ChallengeReason };

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body of a request is read that comes without an account's credential. */
    anonymousCaller: AnonymousCaller | undefined;
  }
}

/** Of a proof that is right, and pays for nothing (any more). */
const PROOF_ERRORS: Partial<Record<RejectionCode, InvalidProofReason>> = {
  challenge_expired: 'expired',
  challenge_mismatch: 'other_request',
  challenge_used: 'used',
};
const RETRY_AFTER_SECONDS = 5;

/** Nothing of the kind was asked for, or it was not paid. */
class InvalidProofError extends UnauthorizedError {
  constructor(readonly proofError: InvalidProofReason) {
    super('The proof of payment is not valid');
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
   * Who sends a request without an account's credential, by its headers alone; undefined where it has one, or nothing can be
   * paid for by the request here.
   * @throws TooManyRequestsError, StoreUnavailableError
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
   * Who sends a request with a proof of payment, whatever that was used for; undefined where it has none.
   * @throws UnauthorizedError when the proof is not right; TooManyRequestsError
   */
  async identifyByProof(request: FastifyRequest): Promise<AnonymousCaller | undefined> {
    const credential = parseCredential(request);
    if (credential === 'account' || credential === 'none') return undefined;
    const verified =
      credential === 'malformed'
        ? credential
        : await this.runLookup(request, () => this.dependencies.proofs.verifyIgnoringExpiry(credential, this.realm));
    if (typeof verified === 'object') return { proof: verified };
    throw new UnauthorizedError('The proof of payment is not valid');
  }

  /**
   * Asks for the payment of a request that is known to be well-formed.
   * @param quote serves the request up to where its money is held
   */
  async requirePayment(
    reply: FastifyReply,
    reason: ChallengeReason,
    quote: (payer: Payer) => Promise<unknown>,
  ): Promise<void> {
    const { request } = reply;
    const paymentRequired = await capturePaymentRequired(quote);
    // What costs nothing is bounded by the account that asks for it.
    if (paymentRequired.query.free)
      throw new UnauthorizedError('This costs nothing, and is for accounts: send "Authorization: Bearer <API key>"');
    await this.dependencies.limits.count('challenges');
    const { query, price, priceList } = paymentRequired;
    const terms = { query, price, priceList, request: this.digestRequest(request), realm: this.realm };
    const command = new IssueChallenge(terms, createRootCause('anybody', request.id));
    sendChallenge(reply, await this.dependencies.commands.execute(command).catch(rethrowAsUnavailable), reason);
  }

  /** The same, for a proof that is right and does not pay for this: it was let in without being counted. */
  async requireAnotherPayment(
    reply: FastifyReply,
    reason: InvalidProofReason,
    quote: (payer: Payer) => Promise<unknown>,
  ): Promise<void> {
    await this.count(reply.request);
    reply.removeHeader('x-generation-id');
    await this.requirePayment(reply, reason, quote);
  }

  /** What became of a request whose proof was right: why its payer is asked again; undefined for what is no fault of the proof. */
  toProofError(error: unknown): InvalidProofReason | undefined {
    return error instanceof Rejection ? PROOF_ERRORS[error.code as RejectionCode] : undefined;
  }

  /**
   * What a payment is bound to: the same for the same request, also where a client writes its JSON anew or its multipart with
   * another boundary. Keyed, so that nobody finds out by it what was asked.
   */
  digestRequest({ method, url, body }: FastifyRequest): string {
    return this.dependencies.secrets.hashWithOldestKey(
      `request of a payment ${method} ${normalizePath(url)}\n${canonicalizeBody(body)}`,
    );
  }

  /** A proof is a credential: who tries many that pay for nothing has them looked up as other wrong ones are. */
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

/** All paths of an endpoint are one, with and without a slash at the end; what the query says stays as it is. */
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
  throw new Error('a request was served that nobody has paid for');
}

function canonicalizeBody(body: unknown): string {
  try {
    return canonicalize(body) ?? '';
  } catch {
    throw new BadRequestError('The body has numbers or text in it that no JSON can have');
  }
}

/** The node or the rates are away: nothing of it is the caller's fault. */
function rethrowAsUnavailable(cause: unknown): never {
  if (!(cause instanceof UpstreamError)) throw cause;
  const message = 'Payments cannot be asked for at the moment';
  throw new UpstreamError('upstream_unavailable', message, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS });
}
