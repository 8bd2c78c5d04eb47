/** Issues a payment challenge: a price, an invoice for it, and one fact that says what its payment is good for. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import canonicalize from 'canonicalize';
import { type ChallengeIssued, convertToUnits, convertToUsd, type Query } from '#domain';
import { type Cause, money, type PicoUsd } from '#kernel';
import type { Clock } from '../clock.ts';
import { UpstreamError } from '../errors.ts';
import { randomBase62, type Secrets } from '../secrets.ts';
import type { Streams } from '../streams.ts';
import type { ExchangeRates } from '../topups/exchange-rates.ts';
import { type CheckedInvoice, verifyInvoice } from '../topups/lightning-invoice.ts';
import type { OfferedMethod, PaymentMethods } from '../topups/payment-methods.ts';
import { assertPlausibleInvoice } from '../topups/plausibility.ts';
import {
  CHALLENGE_INTENT,
  CHALLENGE_METHOD,
  deriveChallengeKeys,
  toChallengeId,
  toChallengeStreamId,
} from './challenge-ids.ts';
import type { ChallengeTokens } from './challenge-tokens.ts';

/** The method of top-ups whose back end makes the invoices. */
const PAID_BY = 'btc-lightning';
const INVOICE_SECONDS = 300;
/** How long what was paid can be used, from when it can no longer be paid. */
const USABLE_MS = 24 * 60 * 60_000;
const REFERENCE_LENGTH = 22;

/** What is to be paid for. */
export interface ChallengeParams {
  readonly query: Query;
  readonly price: PicoUsd;
  readonly priceList: string;
  /** Digest of the request. */
  readonly request: string;
  /** The host that asks for the payment. */
  readonly realm: string;
}

/** A challenge as its client is told of it. */
export interface PaymentChallenge {
  readonly id: string;
  readonly realm: string;
  /** JSON in base64url. */
  readonly request: string;
  readonly description: string;
  /** RFC 3339. */
  readonly expires: string;
  readonly invoice: string;
  /** Of L402. */
  readonly token: string;
  /** Lower-case hexadecimal. */
  readonly paymentHash: string;
  readonly sats: bigint;
}

export class IssueChallenge extends Command<PaymentChallenge> {
  constructor(
    readonly wanted: ChallengeParams,
    readonly cause: Cause,
  ) {
    super();
  }
}

interface Ports {
  readonly streams: Streams;
  readonly offered: PaymentMethods;
  readonly rates: ExchangeRates;
  readonly tokens: ChallengeTokens;
  readonly secrets: Secrets;
  readonly clock: Clock;
}

@CommandHandler(IssueChallenge)
export class IssueChallengeHandler implements ICommandHandler<IssueChallenge> {
  private readonly key: Buffer;

  constructor(private readonly ports: Ports) {
    this.key = deriveChallengeKeys(ports.secrets)[0] as Buffer;
  }

  /** @throws UpstreamError when there is no rate that can be believed, or no invoice */
  async execute({ wanted, cause }: IssueChallenge): Promise<PaymentChallenge> {
    const { streams, tokens, clock } = this.ports;
    const { terms, coin, backend } = lightningOf(this.ports.offered);
    const rate = await this.ports.rates.usdPer(coin.code);
    const units = convertToUnits(wanted.price, coin, rate.value);
    const description = describeQuery(wanted.query);
    const made = await backend.request({
      ...{ topupId: randomBase62(REFERENCE_LENGTH), coin, kind: terms.destination, units },
      ...{ memo: description, expirySeconds: INVOICE_SECONDS, confirmations: terms.confirmations },
    });
    assertPlausibleInvoice(made);
    const at = clock.now();
    const invoice = made.destination.value;
    const known = made.paymentHash === undefined ? {} : { paymentHash: made.paymentHash };
    const checked = verifyInvoice(invoice, { msat: units, ...known, now: at });
    const { expiresAt, paymentHash } = checked;
    const sats = units / BigInt(coin.step);
    const expires = formatExpiry(checked);
    const request = requestOf(sats, invoice, checked);
    const { realm } = wanted;
    const parameters = { realm, method: CHALLENGE_METHOD, intent: CHALLENGE_INTENT, request, expires };
    const id = toChallengeId(parameters, this.key);
    const usableUntil = Date.parse(expiresAt) + USABLE_MS;
    const data: ChallengeIssued['data'] = {
      ...{ id, query: wanted.query, price: money.toJsonAmount(wanted.price), priceList: wanted.priceList },
      ...{ request: wanted.request, method: terms.method, coin: coin.code, units: units.toString() },
      ...{ worth: money.toJsonAmount(convertToUsd(units, coin, rate.value)), rate, backend: backend.name },
      ...{ reference: made.reference, paymentHash, expiresAt, usableUntil: clock.at(usableUntil), at },
    };
    const stream = toChallengeStreamId(id);
    await streams.challenges.run(stream, { type: 'IssueChallenge', data }, { ...cause, correlationId: stream });
    const token = tokens.tokenOf({ id, paymentHash, request: wanted.request, usableUntil }, realm);
    return { id, realm, request, description, expires, invoice, token, paymentHash, sats };
  }
}

/** Whether requests can be paid for one by one here. */
export function canIssueChallenges(offered: PaymentMethods): boolean {
  return offered.method(PAID_BY)?.terms.destination === 'bolt11';
}

function lightningOf(offered: PaymentMethods): OfferedMethod {
  const method = offered.method(PAID_BY);
  if (method) return method;
  throw new UpstreamError('upstream_unavailable', 'Lightning payments are not offered at the moment');
}

/** JSON in the form of RFC 8785: clients write it anew when they send it back. */
function requestOf(sats: bigint, invoice: string, { paymentHash, network }: CheckedInvoice): string {
  const details = { invoice, paymentHash, ...(network === undefined ? {} : { network }) };
  const request = { amount: sats.toString(), currency: 'sat', methodDetails: details };
  return Buffer.from(canonicalize(request) as string).toString('base64url');
}

/** As it is written in a challenge: clients want a `Z` behind it. */
export function formatExpiry({ expiresAt }: { readonly expiresAt: string }): string {
  return expiresAt.replace(/\.\d+Z$/, 'Z');
}

/** What a payment is for, for a person and a header: printable ASCII. */
export function describeQuery({ type, model }: Pick<Query, 'type' | 'model'>): string {
  return `${type.replaceAll('_', ' ')}: ${model}`.replace(/[^\x20-\x7e]/g, '?');
}
