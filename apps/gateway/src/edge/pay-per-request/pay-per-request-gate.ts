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
import type { PublicBaseUrl } from '../network/public-address.ts';
import { type ChallengeReason, sendChallenge } from './challenge-response.ts';
import { parseCredential } from './credentials.ts';

/** A caller without an account: one that has paid for its request, or one to be asked for a payment, and why. */
export type AnonymousCaller = { readonly proof: VerifiedProof } | { readonly why: ChallengeReason };

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the body of a request is read that comes without an account's credential. */
    visitor: AnonymousCaller | undefined;
  }
}

/** Of a proof that is right, and pays for nothing (any more). */
const FAULTS: Partial<Record<RejectionCode, InvalidProofReason>> = {
  challenge_expired: 'expired',
  challenge_mismatch: 'other request',
  challenge_used: 'used',
};
const RETRY_AFTER_SECONDS = 5;

/** Nothing of the kind was asked for, or it was not paid. */
class WrongProof extends UnauthorizedError {
  constructor(readonly fault: InvalidProofReason) {
    super('The proof of payment is not valid');
  }
}

interface Ports {
  readonly lookUps: CredentialLookups;
  readonly commands: CommandBus;
  readonly offered: PaymentMethods;
  readonly proofs: ProofVerifier;
  readonly limits: RateLimiter;
  readonly secrets: Secrets;
  readonly address: PublicBaseUrl;
}

export class PayPerRequestGate {
  constructor(private readonly ports: Ports) {}

  /**
   * Who sends a request without an account's credential, by its headers alone; undefined where it has one, or nothing can be
   * paid for by the request here.
   * @throws TooManyRequestsError, StoreUnavailableError
   */
  async visitor(request: FastifyRequest): Promise<AnonymousCaller | undefined> {
    const shown = parseCredential(request);
    if (shown === 'account') return undefined;
    const checked =
      typeof shown === 'object' ? await this.looked(request, () => this.ports.proofs.verify(shown, this.realm)) : shown;
    if (typeof checked === 'object') return { proof: checked };
    if (!canIssueChallenges(this.ports.offered)) return undefined;
    await this.count(request);
    return { why: checked === 'nothing' ? 'no proof' : checked };
  }

  /**
   * Who sends a request with a proof of payment, whatever that was used for; undefined where it has none.
   * @throws UnauthorizedError when the proof is not right; TooManyRequestsError
   */
  async prover(request: FastifyRequest): Promise<AnonymousCaller | undefined> {
    const shown = parseCredential(request);
    if (shown === 'account' || shown === 'nothing') return undefined;
    const known =
      shown === 'malformed'
        ? shown
        : await this.looked(request, () => this.ports.proofs.verifyIgnoringExpiry(shown, this.realm));
    if (typeof known === 'object') return { proof: known };
    throw new UnauthorizedError('The proof of payment is not valid');
  }

  /**
   * Asks for the payment of a request that is known to be well-formed.
   * @param quote serves the request up to where its money is held
   */
  async ask(reply: FastifyReply, why: ChallengeReason, quote: (payer: Payer) => Promise<unknown>): Promise<void> {
    const { request } = reply;
    const wanted = await wantedBy(quote);
    // What costs nothing is bounded by the account that asks for it.
    if (wanted.query.free)
      throw new UnauthorizedError('This costs nothing, and is for accounts: send "Authorization: Bearer <API key>"');
    await this.ports.limits.count('challenges');
    const { query, price, priceList } = wanted;
    const terms = { query, price, priceList, request: this.digestOf(request), realm: this.realm };
    const command = new IssueChallenge(terms, createRootCause('anybody', request.id));
    sendChallenge(reply, await this.ports.commands.execute(command).catch(unavailable), why);
  }

  /** The same, for a proof that is right and does not pay for this: it was let in without being counted. */
  async askAgain(
    reply: FastifyReply,
    why: InvalidProofReason,
    quote: (payer: Payer) => Promise<unknown>,
  ): Promise<void> {
    await this.count(reply.request);
    reply.removeHeader('x-generation-id');
    await this.ask(reply, why, quote);
  }

  /** What became of a request whose proof was right: why its payer is asked again; undefined for what is no fault of the proof. */
  faultIn(error: unknown): InvalidProofReason | undefined {
    return error instanceof Rejection ? FAULTS[error.code as RejectionCode] : undefined;
  }

  /**
   * What a payment is bound to: the same for the same request, also where a client writes its JSON anew or its multipart with
   * another boundary. Keyed, so that nobody finds out by it what was asked.
   */
  digestOf({ method, url, body }: FastifyRequest): string {
    return this.ports.secrets.hashWithOldestKey(
      `request of a payment ${method} ${normalizePath(url)}\n${canonical(body)}`,
    );
  }

  /** A proof is a credential: who tries many that pay for nothing has them looked up as other wrong ones are. */
  private async looked(
    { ip }: FastifyRequest,
    look: () => Promise<VerifiedProof | InvalidProofReason>,
  ): Promise<VerifiedProof | InvalidProofReason> {
    try {
      return await this.ports.lookUps.make(ip, false, async () => {
        const found = await look();
        if (found === 'unknown' || found === 'unpaid') throw new WrongProof(found);
        return found;
      });
    } catch (error) {
      if (error instanceof WrongProof) return error.fault;
      throw error;
    }
  }

  private count({ ip }: FastifyRequest): Promise<void> {
    return this.ports.limits.count('requests without payment of an address', toNetwork(ip));
  }

  private get realm(): string {
    return new URL(this.ports.address.url).host;
  }
}

/** All paths of an endpoint are one, with and without a slash at the end; what the query says stays as it is. */
export function normalizePath(url: string): string {
  return url.replace(/^\/v1(?=\/)/, '').replace(/^([^?]*)\/(?=\?|$)/, '$1');
}

async function wantedBy(quote: (payer: Payer) => Promise<unknown>): Promise<PaymentRequiredError> {
  try {
    await quote(new QuoteOnlyPayer());
  } catch (error) {
    if (error instanceof PaymentRequiredError) return error;
    throw error;
  }
  throw new Error('a request was served that nobody has paid for');
}

function canonical(body: unknown): string {
  try {
    return canonicalize(body) ?? '';
  } catch {
    throw new BadRequestError('The body has numbers or text in it that no JSON can have');
  }
}

/** The node or the rates are away: nothing of it is the caller's fault. */
function unavailable(cause: unknown): never {
  if (!(cause instanceof UpstreamError)) throw cause;
  const message = 'Payments cannot be asked for at the moment';
  throw new UpstreamError('upstream_unavailable', message, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS });
}
