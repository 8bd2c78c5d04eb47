/** Issues a payment challenge: a price, an invoice for it, and one event that records what the payment is valid for. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import canonicalize from 'canonicalize';
import { type ChallengeIssued, convertToUnits, convertToUsd, type Query } from '#domain';
import { type Cause, money, type PicoUsd, type Runtime } from '#kernel';
import type { Clock } from '../clock.ts';
import { UpstreamError } from '../errors.ts';
import { generateBase62, type Secrets } from '../secrets.ts';
import type { Streams } from '../streams.ts';
import type { ExchangeRates } from '../topups/exchange-rates.ts';
import { type VerifiedInvoice, verifyInvoice } from '../topups/lightning-invoice.ts';
import { createPaymentAtFirst } from '../topups/payment-backend.ts';
import type { AvailablePaymentMethod, PaymentMethods } from '../topups/payment-methods.ts';
import { assertPlausibleInvoice } from '../topups/plausibility.ts';
import {
  CHALLENGE_INTENT,
  CHALLENGE_METHOD,
  deriveChallengeKeys,
  toChallengeId,
  toChallengeStreamId,
} from './challenge-ids.ts';
import type { ChallengeTokens } from './challenge-tokens.ts';

/** The top-up method whose payment backend creates the invoices. */
const LIGHTNING_METHOD = 'btc-lightning';
const INVOICE_EXPIRY_SECONDS = 900;
/** How long a payment can be used after its invoice has expired. */
const TOKEN_USABLE_MS = 24 * 60 * 60_000;
/** How long a challenge can be used after it was issued, if its invoice has the requested expiry. */
export const CHALLENGE_USABLE_MS = INVOICE_EXPIRY_SECONDS * 1_000 + TOKEN_USABLE_MS;
const REFERENCE_LENGTH = 22;

export interface ChallengeParams {
  readonly query: Query;
  readonly price: PicoUsd;
  readonly priceList: string;
  /** Digest of the request. */
  readonly request: string;
  /** The host that requests the payment. */
  readonly realm: string;
}

/** A challenge as it is sent to its client. */
export interface PaymentChallenge {
  readonly id: string;
  readonly realm: string;
  /** The request for the payment: JSON in base64url. */
  readonly request: string;
  readonly description: string;
  /** RFC 3339. */
  readonly expires: string;
  readonly invoice: string;
  /** The L402 token. */
  readonly token: string;
  /** Lower-case hexadecimal. */
  readonly paymentHash: string;
  readonly sats: bigint;
}

export class IssueChallenge extends Command<PaymentChallenge> {
  constructor(
    readonly params: ChallengeParams,
    readonly cause: Cause,
  ) {
    super();
  }
}

interface IssueChallengeDependencies {
  readonly streams: Streams;
  readonly paymentMethods: PaymentMethods;
  readonly rates: ExchangeRates;
  readonly tokens: ChallengeTokens;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly runtime: Runtime;
}

@CommandHandler(IssueChallenge)
export class IssueChallengeHandler implements ICommandHandler<IssueChallenge> {
  private readonly keys: readonly Buffer[];

  constructor(private readonly dependencies: IssueChallengeDependencies) {
    this.keys = deriveChallengeKeys(dependencies.secrets);
  }

  /**
   * @throws UpstreamError if Lightning payments are not available, or there is no plausible exchange rate or no valid
   *   invoice
   */
  async execute({ params, cause }: IssueChallenge): Promise<PaymentChallenge> {
    const { streams, tokens, clock, paymentMethods, runtime } = this.dependencies;
    const { terms, coin, backends } = getLightningMethod(paymentMethods);
    const rate = await this.dependencies.rates.fetchUsdRate(coin.code);
    const units = convertToUnits(params.price, coin, rate.value);
    const description = describeQuery(params.query);
    const paymentRequest = {
      topupId: generateBase62(runtime, REFERENCE_LENGTH),
      coin,
      kind: terms.destination,
      units,
      memo: description,
      expirySeconds: INVOICE_EXPIRY_SECONDS,
      confirmations: terms.confirmations,
    };
    const { lightningTimeoutMs } = paymentMethods;
    const { backend, payment } = await createPaymentAtFirst(backends, paymentRequest, {
      lightningTimeoutMs,
      timers: runtime,
    });
    assertPlausibleInvoice(payment);
    const at = clock.now();
    const invoice = payment.destination.value;
    const expectedHash = payment.paymentHash === undefined ? {} : { paymentHash: payment.paymentHash };
    const checked = verifyInvoice(invoice, { msat: units, ...expectedHash, now: at });
    const { expiresAt, paymentHash } = checked;
    const sats = units / BigInt(coin.step);
    const expires = formatExpiry(checked);
    const request = encodePaymentRequest(sats, invoice, checked);
    const { realm } = params;
    const parameters = { realm, method: CHALLENGE_METHOD, intent: CHALLENGE_INTENT, request, expires };
    const id = toChallengeId(parameters, this.keys[0] as Buffer);
    const usableUntil = Date.parse(expiresAt) + TOKEN_USABLE_MS;
    const data: ChallengeIssued['data'] = {
      id,
      query: params.query,
      price: money.toJsonAmount(params.price),
      priceList: params.priceList,
      request: params.request,
      method: terms.method,
      coin: coin.code,
      units: units.toString(),
      worth: money.toJsonAmount(convertToUsd(units, coin, rate.value)),
      rate,
      backend: backend.name,
      reference: payment.reference,
      paymentHash,
      expiresAt,
      usableUntil: clock.toInstant(usableUntil),
      at,
    };
    const stream = toChallengeStreamId(id);
    await streams.challenges.run(stream, { type: 'IssueChallenge', data }, { ...cause, correlationId: stream });
    const token = tokens.create({ id, paymentHash, request: params.request, usableUntil }, realm);
    return { id, realm, request, description, expires, invoice, token, paymentHash, sats };
  }
}

/** Whether single requests can be paid for in this installation. */
export function canIssueChallenges(paymentMethods: PaymentMethods): boolean {
  return paymentMethods.findMethod(LIGHTNING_METHOD)?.terms.destination === 'bolt11';
}

function getLightningMethod(paymentMethods: PaymentMethods): AvailablePaymentMethod {
  const method = paymentMethods.findMethod(LIGHTNING_METHOD);
  if (method) return method;
  throw new UpstreamError('upstream_unavailable', 'Lightning payments are currently not available');
}

/** Returns canonical JSON (RFC 8785) in base64url: clients serialise it again when they send it back. */
function encodePaymentRequest(sats: bigint, invoice: string, { paymentHash, network }: VerifiedInvoice): string {
  const details = { invoice, paymentHash, ...(network === undefined ? {} : { network }) };
  const request = { amount: sats.toString(), currency: 'sat', methodDetails: details };
  return Buffer.from(canonicalize(request) as string).toString('base64url');
}

/** Formats the expiry as in a challenge: without milliseconds, and with the `Z` that clients require. */
export function formatExpiry({ expiresAt }: { readonly expiresAt: string }): string {
  return expiresAt.replace(/\.\d+Z$/, 'Z');
}

/** Describes what a payment is for, for users and in a header: printable ASCII. */
export function describeQuery({ type, model }: Pick<Query, 'type' | 'model'>): string {
  return `${type.replaceAll('_', ' ')}: ${model}`.replace(/[^\x20-\x7e]/g, '?');
}
