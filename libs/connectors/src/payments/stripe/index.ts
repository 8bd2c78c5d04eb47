/**
 * Payments by card through Stripe Checkout: a page of Stripe's, of which we see only what was paid. A reference is the id
 * of a Checkout Session, and so is the id of its payment: a session is paid once. What a web hook or the list of events
 * says is never believed; the session is read again with our key.
 * Facts from Stripe's API reference and its guide to fulfilment (API version of the library).
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Stripe } from 'stripe';
import {
  type BackendPayment,
  type CreatedPayment,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
  type WebhookRequest,
} from '#application';
import type { BackendKind } from '../backend-kind.ts';
import { EVENT_TYPES, parseStripeEvent, type StripeEventSubject } from './events.ts';
import {
  assertSessionMatches,
  ImplausibleStripeResponseError,
  isProcessing,
  type PaidSession,
  parseSessionPayment,
} from './responses.ts';
import { StripeHttpClient } from './stripe-http-client.ts';

const TIMEOUT_MS = 10_000;
/** Stripe takes sessions of half an hour to a day. A top-up that expires sooner is credited all the same. */
const MIN_SESSION_SECONDS = 31 * 60;
const MAX_SESSION_SECONDS = 24 * 3600 - 60;
const EVENT_POLL_INTERVAL_MS = 2_000;
/** A process that was away for longer finds the rest by looking. */
const EVENT_LOOKBACK_SECONDS = 3_600;
const EVENT_PAGE_SIZE = 100;
const MAX_EVENTS = 1_000;
/** The library takes a while to load: a process that has nothing to do with it yet starts without. */
const IDLE_MS = 30_000;
const EXPANDED_FIELDS = ['payment_intent.latest_charge.balance_transaction', 'payment_intent.latest_charge.refunds'];
const MAX_PAGE_SIZE = 100;

export interface StripeSettings {
  /** A secret key or a restricted one; undefined: none takes cards. */
  readonly stripeKey: string | undefined;
  /** Address of the API, without the `/v1`. */
  readonly stripeUrl: string;
  /** Undefined: web hooks are not believed. */
  readonly stripeWebhookSecret: string | undefined;
}

export const stripe: BackendKind<StripeSettings> = {
  name: 'stripe',
  accepts: ({ code }, kind) => kind === 'page' && code === 'USD',
  open: ({ stripeKey, ...settings }) =>
    stripeKey === undefined ? undefined : new StripeBackend({ stripeKey, ...settings }),
};

export class StripeBackend implements PaymentBackend {
  readonly name = stripe.name;
  readonly maxBatchSize = 1;
  private readonly http: StripeHttpClient;
  private readonly firstUse = Promise.withResolvers<void>();
  private client: Promise<Stripe> | undefined;

  constructor(private readonly settings: StripeSettings & { readonly stripeKey: string }) {
    this.http = new StripeHttpClient(settings.stripeUrl);
  }

  async createPayment({ topupId, units, memo, expirySeconds, returnUrl }: PaymentRequest): Promise<CreatedPayment> {
    if (returnUrl === undefined) throw new Error('a customer who is sent to Stripe needs a page to come back to');
    const seconds = Math.min(Math.max(expirySeconds, MIN_SESSION_SECONDS), MAX_SESSION_SECONDS);
    const cents = Number(units);
    const metadata = { topup: topupId, cents: units.toString() };
    const terms: Stripe.Checkout.SessionCreateParams = {
      mode: 'payment',
      line_items: [{ quantity: 1, price_data: { currency: 'usd', unit_amount: cents, product_data: { name: memo } } }],
      allowed_payment_method_types: ['card'],
      adaptive_pricing: { enabled: false },
      allow_promotion_codes: false,
      automatic_tax: { enabled: false },
      client_reference_id: topupId,
      metadata,
      payment_intent_data: { metadata },
      expires_at: Math.floor(Date.now() / 1000) + seconds,
      ...{ success_url: returnUrl, cancel_url: returnUrl },
    };
    const key = { idempotencyKey: `countinghouse-${topupId}`, maxNetworkRetries: 2 };
    const session = await this.call((api) => api.checkout.sessions.create(terms, key));
    return mapImplausibleErrors(() => {
      assertSessionMatches(session, { topupId, units });
      return { reference: session.id, destination: { kind: 'page', value: getPageUrl(session) } };
    });
  }

  async fetchPayments(references: readonly string[]): Promise<readonly BackendPayment[]> {
    const payments: BackendPayment[] = [];
    for (const reference of references) payments.push(...(await this.fetchPayment(reference)));
    return payments;
  }

  async *subscribe(signal: AbortSignal): AsyncGenerator<string> {
    const idle = delay(IDLE_MS, undefined, { signal, ref: false }).catch(() => {});
    await Promise.race([this.firstUse.promise, idle]);
    const since = Math.floor(Date.now() / 1000) - EVENT_LOOKBACK_SECONDS;
    let last: string | undefined;
    while (!signal.aborted) {
      const events = await this.fetchEventsAfter(last, since);
      last = events[0]?.id ?? last;
      for (const reference of await this.findSessions(events.toReversed().map(parseStripeEvent))) yield reference;
      await delay(EVENT_POLL_INTERVAL_MS, undefined, { signal }).catch(() => {});
    }
  }

  async parseWebhook({ headers, body }: WebhookRequest): Promise<readonly string[] | undefined> {
    const secret = this.settings.stripeWebhookSecret;
    const signature = headers['stripe-signature'];
    if (secret === undefined || typeof signature !== 'string') return undefined;
    const { webhooks } = await this.getApi();
    let event: Stripe.Event;
    try {
      event = webhooks.constructEvent(body, signature, secret);
    } catch {
      return undefined; // signed by somebody else, or too long ago, or no JSON
    }
    return this.findSessions([parseStripeEvent(event)]);
  }

  close(): Promise<void> {
    return this.http.close();
  }

  private async fetchPayment(reference: string): Promise<readonly BackendPayment[]> {
    const session = await this.find((api) => api.checkout.sessions.retrieve(reference, { expand: EXPANDED_FIELDS }));
    if (!session) return []; // of another account than that of our key, which the operator has changed
    const paid = mapImplausibleErrors(() => parseSessionPayment(session, reference));
    if (!paid) return isProcessing(session) ? [toPendingPayment(session, reference)] : [];
    const [refunds, disputes] = [await this.fetchRefunds(paid), await this.fetchDisputes(paid)];
    return mapImplausibleErrors(() => [paid.withChanges(refunds, disputes)]);
  }

  /** With what each has moved; the session itself has only the first few. */
  private async fetchRefunds({ intent, hasRefunds }: PaidSession): Promise<readonly Stripe.Refund[]> {
    if (!hasRefunds) return [];
    const params = { payment_intent: intent, limit: MAX_PAGE_SIZE, expand: ['data.balance_transaction'] };
    return this.call((api) => api.refunds.list(params).autoPagingToArray({ limit: MAX_EVENTS }));
  }

  private async fetchDisputes({ intent, isDisputed }: PaidSession): Promise<readonly Stripe.Dispute[]> {
    if (!isDisputed) return [];
    const params = { payment_intent: intent, limit: MAX_PAGE_SIZE };
    return this.call((api) => api.disputes.list(params).autoPagingToArray({ limit: MAX_EVENTS }));
  }

  /** Newest first. Where the position is not known any more, those since the start are asked for again. */
  private async fetchEventsAfter(last: string | undefined, since: number): Promise<readonly Stripe.Event[]> {
    const from = last === undefined ? { created: { gte: since } } : { ending_before: last };
    const params = { types: [...EVENT_TYPES], limit: EVENT_PAGE_SIZE, ...from };
    const events = await this.call((api) => api.events.list(params).autoPagingToArray({ limit: MAX_EVENTS }));
    return last === undefined ? events : events.toReversed(); // the library turns what it pages backwards
  }

  /** The sessions that events are about, each once. One that is about a charge names its payment, by which it is found. */
  private async findSessions(reported: readonly StripeEventSubject[]): Promise<readonly string[]> {
    const sessions = new Set(reported.flatMap(({ session }) => (session === undefined ? [] : [session])));
    const intents = new Set(reported.flatMap(({ intent }) => (intent === undefined ? [] : [intent])));
    for (const payment_intent of intents) {
      const list = await this.find((api) => api.checkout.sessions.list({ payment_intent, limit: 1 }));
      for (const { id } of list?.data ?? []) sessions.add(id);
    }
    return [...sessions];
  }

  private async call<T>(request: (api: Stripe) => Promise<T>): Promise<T> {
    this.firstUse.resolve();
    const api = await this.getApi();
    try {
      return await request(api);
    } catch (error) {
      throw toStripeError(error);
    }
  }

  /** @returns undefined where Stripe does not know what was asked for */
  private async find<T>(request: (api: Stripe) => Promise<T>): Promise<T | undefined> {
    try {
      return await this.call(request);
    } catch (error) {
      if (error instanceof UpstreamError && error.status === 404) return undefined;
      throw error;
    }
  }

  private getApi(): Promise<Stripe> {
    this.client ??= this.createClient();
    return this.client;
  }

  private async createClient(): Promise<Stripe> {
    const { Stripe: Library } = await import('stripe');
    const options = { timeout: TIMEOUT_MS, maxNetworkRetries: 0, telemetry: false };
    return new Library(this.settings.stripeKey, { httpClient: this.http, ...options });
  }
}

/** It was asked for, and may be paid or not: nobody is credited for it yet. */
function toPendingPayment({ amount_total, created }: Stripe.Checkout.Session, reference: string): BackendPayment {
  const receivedAt = new Date(created * 1000).toISOString();
  return { reference, id: reference, units: BigInt(amount_total ?? 0), confirmations: 'pending', receivedAt };
}

/** @throws ImplausibleStripeResponseError */
function getPageUrl({ url }: Stripe.Checkout.Session): string {
  if (url !== null && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new ImplausibleStripeResponseError('has no page to pay on');
}

function mapImplausibleErrors<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ImplausibleStripeResponseError)) throw error;
    throw new UpstreamError('upstream_error', `What Stripe answered ${error.message}`);
  }
}

/** Nothing of the library's error goes on but its kind: it has what was sent and answered. */
function toStripeError(error: unknown): Error {
  const { type, statusCode, code, requestId } = error as Partial<Stripe.errors.StripeError>;
  if (error instanceof UpstreamError) return error;
  // The library trips over what is built otherwise than it expects, and says so in words that repeat the answer.
  if (typeof type !== 'string') return new UpstreamError('upstream_error', 'Stripe sent an answer that cannot be read');
  if (statusCode === undefined) return new UpstreamError('upstream_unavailable', 'Stripe cannot be reached');
  const summary = [type, code].filter((value) => typeof value === 'string').join(', ');
  // Its id is not in the words: what many requests meet is one alarm.
  const details = { status: statusCode, ...(requestId === undefined ? {} : { vendorId: requestId }) };
  return new UpstreamError('upstream_error', `Stripe answered with status ${statusCode} (${summary})`, details);
}
