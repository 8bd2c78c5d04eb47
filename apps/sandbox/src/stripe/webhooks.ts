/** The web hooks of a simulated Stripe, signed by its own library. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Report } from '../report.ts';
import type { StripeObject } from './account.ts';

/** When a delivery is repeated that was not answered with 2xx. */
const REPEATED_AFTER_MS = [5_000, 60_000, 600_000];
const TIMEOUT_MS = 10_000;
const AT_ONCE = 4;

/** Also by several processes of Stripe at the same time. */
export type HookReport = Report | 'at once';

interface Endpoint {
  readonly url: string;
  readonly secret: string;
}

export class StripeWebhooks {
  private readonly endpoints: Endpoint[] = [];
  /** What comes in the wrong order waits for what happens next. */
  private held: readonly StripeObject[] = [];
  private readonly closing = new AbortController();

  add(endpoint: Endpoint): void {
    this.endpoints.push(endpoint);
  }

  /** Sends what happened, after the answer to what made it happen. */
  report(events: readonly StripeObject[], report: HookReport): void {
    if (report === 'never') return;
    if (report === 'reordered') {
      this.held = [...this.held, ...events];
      return;
    }
    const late = this.held.toReversed();
    this.held = [];
    for (const endpoint of this.endpoints) void this.send(endpoint, [...events, ...late], report);
  }

  close(): void {
    this.closing.abort();
  }

  private async send({ url, secret }: Endpoint, events: readonly StripeObject[], report: HookReport): Promise<void> {
    const to = { url, secret: report === 'forged' ? `not ${secret}` : secret };
    for (const event of events) {
      const times = report === 'at once' ? AT_ONCE : 1;
      await Promise.all(Array.from({ length: times }, () => this.deliver(to, event, report !== 'forged')));
      if (report === 'twice') await this.deliver(to, event, true);
    }
  }

  private async deliver(to: Endpoint, event: StripeObject, repeat: boolean): Promise<void> {
    for (const wait of [0, ...(repeat ? REPEATED_AFTER_MS : [])]) {
      try {
        if (wait > 0) await delay(wait, undefined, { ref: false, signal: this.closing.signal });
        if (await this.post(to, JSON.stringify(event, undefined, 2))) return;
      } catch {
        if (this.closing.signal.aborted) return; // else nobody answered, and it is repeated
      }
    }
  }

  private async post({ url, secret }: Endpoint, payload: string): Promise<boolean> {
    const { Stripe } = await import('stripe'); // takes a while, and most that run the sandbox take no card
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret });
    const headers = { 'content-type': 'application/json; charset=utf-8', 'stripe-signature': signature };
    const signal = AbortSignal.any([this.closing.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const response = await fetch(url, { method: 'POST', headers, body: payload, signal });
    await response.arrayBuffer();
    return response.ok;
  }
}
