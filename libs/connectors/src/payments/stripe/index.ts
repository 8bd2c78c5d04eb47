/**
 * Card payments through Stripe Checkout, a page of Stripe. A session is paid once, so the id of the Checkout Session is
 * both the reference and the id of the payment. The payment intent is the source of the payment. Webhooks and the list
 * of events are only hints: the session is always fetched again with the operator's key.
 *
 * Sources: Stripe's API reference and its guide to fulfilment, for the API version of the library.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Stripe } from 'stripe';
import {
  type BackendPayment,
  type CreatedPayment,
  createCredentialError,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
  type WebhookRequest,
} from '#application';
import { type BackendKind, hasSettings } from '../backend-kind.ts';
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
/**
 * Stripe accepts session lifetimes from 30 minutes to 24 hours; these limits have a margin of one minute. A session may
 * outlive its top-up; its payment is still credited.
 */
const MIN_SESSION_SECONDS = 31 * 60;
const MAX_SESSION_SECONDS = 24 * 3600 - 60;
const EVENT_POLL_INTERVAL_MS = 2_000;
/** How far back events are read after the start. Payments before that are found by polling. */
const EVENT_LOOKBACK_SECONDS = 3_600;
const EVENT_PAGE_SIZE = 100;
const MAX_EVENTS = 1_000;
/**
 * Maximum time that a subscription waits for the first call. Otherwise it would load the library at once, and the
 * process would start more slowly.
 */
const IDLE_MS = 30_000;
const EXPANDED_FIELDS = ['payment_intent.latest_charge.balance_transaction', 'payment_intent.latest_charge.refunds'];
const MAX_PAGE_SIZE = 100;

export interface StripeSettings {
  /** A secret or restricted key; undefined: card payments are not configured. */
  readonly stripeKey: string | undefined;
  /** Address of the API, without the `/v1`. */
  readonly stripeUrl: string;
  /** Undefined: all webhooks are rejected. */
  readonly stripeWebhookSecret: string | undefined;
}

export const stripe: BackendKind<StripeSettings> = {
  name: 'stripe',
  credentialSetting: 'STRIPE_SECRET_KEY',
  accepts: ({ code }, kind) => kind === 'page' && code === 'USD',
  open: (settings) => (hasSettings(settings, 'stripeKey') ? new StripeBackend(settings) : undefined),
};

export class StripeBackend implements PaymentBackend {
  readonly name = stripe.name;
  readonly maxBatchSize = 1;
  private readonly http: StripeHttpClient;
  private readonly firstUse = Promise.withResolvers<void>();
  private client: { readonly key: string; readonly api: Promise<Stripe> } | undefined;

  constructor(private readonly settings: StripeSettings & { readonly stripeKey: string }) {
    this.http = new StripeHttpClient(settings.stripeUrl);
  }

  async createPayment({ topupId, units, memo, expirySeconds, returnUrl }: PaymentRequest): Promise<CreatedPayment> {
    if (returnUrl === undefined) throw new Error('a Stripe session requires a return URL');
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
      success_url: returnUrl,
      cancel_url: returnUrl,
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
    const idle = delay(IDLE_MS, undefined, { signal, ref: false }).catch(() => {}); // aborted
    await Promise.race([this.firstUse.promise, idle]);
    const since = Math.floor(Date.now() / 1000) - EVENT_LOOKBACK_SECONDS;
    let last: string | undefined;
    while (!signal.aborted) {
      const events = await this.fetchEventsAfter(last, since);
      last = events[0]?.id ?? last;
      for (const reference of await this.findSessions(events.toReversed().map(parseStripeEvent))) yield reference;
      await delay(EVENT_POLL_INTERVAL_MS, undefined, { signal }).catch(() => {}); // aborted
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
      return undefined; // another signature, too old, or invalid JSON
    }
    return this.findSessions([parseStripeEvent(event)]);
  }

  close(): Promise<void> {
    return this.http.close();
  }

  private async fetchPayment(reference: string): Promise<readonly BackendPayment[]> {
    const session = await this.find((api) => api.checkout.sessions.retrieve(reference, { expand: EXPANDED_FIELDS }));
    if (!session) return []; // created with another Stripe account: the operator has changed the key
    const paid = mapImplausibleErrors(() => parseSessionPayment(session, reference));
    if (!paid) return isProcessing(session) ? [toPendingPayment(session, reference)] : [];
    const [refunds, disputes] = [await this.fetchRefunds(paid), await this.fetchDisputes(paid)];
    return mapImplausibleErrors(() => [paid.withChanges(refunds, disputes)]);
  }

  /**
   * Fetches up to `MAX_EVENTS` refunds with their balance transactions. The session itself has only a few of its
   * refunds.
   */
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

  /** Returns up to `MAX_EVENTS` events after `last`, or since `since` if `last` is undefined; newest first. */
  private async fetchEventsAfter(last: string | undefined, since: number): Promise<readonly Stripe.Event[]> {
    const from = last === undefined ? { created: { gte: since } } : { ending_before: last };
    const params = { types: [...EVENT_TYPES], limit: EVENT_PAGE_SIZE, ...from };
    const events = await this.call((api) => api.events.list(params).autoPagingToArray({ limit: MAX_EVENTS }));
    return last === undefined ? events : events.toReversed(); // the library reverses backward pages
  }

  /** Returns the ids of the sessions of events, each once. The session of a payment intent is looked up. */
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

  /** @returns undefined if Stripe responds with 404 */
  private async find<T>(request: (api: Stripe) => Promise<T>): Promise<T | undefined> {
    try {
      return await this.call(request);
    } catch (error) {
      if (error instanceof UpstreamError && error.status === 404) return undefined;
      throw error;
    }
  }

  private getApi(): Promise<Stripe> {
    const { stripeKey: key } = this.settings;
    if (this.client?.key !== key) this.client = { key, api: this.createClient(key) };
    return this.client.api;
  }

  private async createClient(key: string): Promise<Stripe> {
    const { Stripe: Library } = await import('stripe');
    return new Library(key, { httpClient: this.http, timeout: TIMEOUT_MS, maxNetworkRetries: 0, telemetry: false });
  }
}

/** The payment can still succeed or fail, so it is not credited yet. */
function toPendingPayment({ amount_total, created }: Stripe.Checkout.Session, reference: string): BackendPayment {
  const receivedAt = new Date(created * 1000).toISOString();
  return { reference, id: reference, units: BigInt(amount_total ?? 0), confirmations: 'pending', receivedAt };
}

/** @throws ImplausibleStripeResponseError unless the session has an HTTP or HTTPS URL */
function getPageUrl({ url }: Stripe.Checkout.Session): string {
  if (url !== null && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new ImplausibleStripeResponseError('has no payment page');
}

function mapImplausibleErrors<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ImplausibleStripeResponseError)) throw error;
    throw new UpstreamError('upstream_error', `Stripe's response ${error.message}`);
  }
}

/**
 * Drops everything but type, code, status and request id: the library's error contains the request and the response.
 */
function toStripeError(error: unknown): Error {
  const { type, statusCode, code, requestId } = error as Partial<Stripe.errors.StripeError>;
  if (error instanceof UpstreamError) return error;
  // The library fails on unexpected formats with an error that quotes the response.
  if (typeof type !== 'string') return new UpstreamError('upstream_error', 'Stripe sent an unreadable response');
  if (statusCode === undefined)
    return new UpstreamError('upstream_unavailable', 'Stripe cannot be reached, or its response cannot be read');
  const summary = [type, code].filter((value) => typeof value === 'string').join(', ');
  // The id of the request is not part of the message, so that errors of many requests are reported as one.
  const details = { status: statusCode, ...(requestId === undefined ? {} : { vendorId: requestId }) };
  const message = `Stripe responded with status ${statusCode} (${summary})`;
  if (statusCode === 401) return createCredentialError(message, statusCode).withDetails(details);
  // With 403 the key lacks the permission for some requests. Payments that need no such request are still polled.
  const operatorProblem = statusCode === 403 ? ({ reason: 'credential', scope: 'request' } as const) : undefined;
  return new UpstreamError('upstream_error', message, { ...details, operatorProblem });
}
