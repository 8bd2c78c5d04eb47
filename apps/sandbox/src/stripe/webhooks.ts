/** The webhooks of a simulated Stripe, signed by Stripe's own library. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ReportMode } from '../report.ts';
import type { StripeObject } from './account.ts';

/** Delays before repeating a delivery that got no response with status 2xx. */
const RETRY_DELAYS_MS = [5_000, 60_000, 600_000];
const TIMEOUT_MS = 10_000;
const PARALLEL_DELIVERIES = 4;

/** With `at once`, each event is delivered several times concurrently. */
export type WebhookReportMode = ReportMode | 'at once';

interface WebhookEndpoint {
  readonly url: string;
  readonly secret: string;
}

export class StripeWebhooks {
  private readonly endpoints: WebhookEndpoint[] = [];
  /** Reordered events, which are sent in reverse order after the next ones. */
  private delayedEvents: readonly StripeObject[] = [];
  private readonly closing = new AbortController();

  add(endpoint: WebhookEndpoint): void {
    this.endpoints.push(endpoint);
  }

  /**
   * Sends the events, and after them the delayed ones, without waiting for their delivery. With `reordered` the events
   * are delayed; with `never` they are dropped.
   */
  report(events: readonly StripeObject[], report: WebhookReportMode): void {
    if (report === 'never') return;
    if (report === 'reordered') {
      this.delayedEvents = [...this.delayedEvents, ...events];
      return;
    }
    const delayed = this.delayedEvents.toReversed();
    this.delayedEvents = [];
    for (const endpoint of this.endpoints) void this.send(endpoint, [...events, ...delayed], report);
  }

  close(): void {
    this.closing.abort();
  }

  private async send(
    { url, secret }: WebhookEndpoint,
    events: readonly StripeObject[],
    report: WebhookReportMode,
  ): Promise<void> {
    const to = { url, secret: report === 'forged' ? `not ${secret}` : secret };
    for (const event of events) {
      const times = report === 'at once' ? PARALLEL_DELIVERIES : 1;
      await Promise.all(Array.from({ length: times }, () => this.deliver(to, event, report !== 'forged')));
      if (report === 'twice') await this.deliver(to, event, true);
    }
  }

  private async deliver(to: WebhookEndpoint, event: StripeObject, allowsRetry: boolean): Promise<void> {
    for (const wait of [0, ...(allowsRetry ? RETRY_DELAYS_MS : [])]) {
      try {
        if (wait > 0) await delay(wait, undefined, { ref: false, signal: this.closing.signal });
        if (await this.post(to, JSON.stringify(event, undefined, 2))) return;
      } catch {
        if (this.closing.signal.aborted) return; // any other error means no response, which counts as a failure
      }
    }
  }

  private async post({ url, secret }: WebhookEndpoint, payload: string): Promise<boolean> {
    const { Stripe } = await import('stripe'); // slow to load, and rarely needed
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret });
    const headers = { 'content-type': 'application/json; charset=utf-8', 'stripe-signature': signature };
    const signal = AbortSignal.any([this.closing.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const response = await fetch(url, { method: 'POST', headers, body: payload, signal });
    await response.arrayBuffer();
    return response.ok;
  }
}
