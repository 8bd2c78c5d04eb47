/**
 * The webhooks of a simulated BTCPay Server. Each has a queue that delivers in order. With automatic redelivery, an
 * event whose delivery failed is delivered again before the next event, at most once after each of RETRY_DELAYS_MS.
 * Sources: BTCPay Server's `WebhookSender` and the description of its Greenfield API.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { base58 } from '@scure/base';
import type { ReportMode } from '../report.ts';

/** Delays before repeating a delivery that got no response, or status 408, 429 or 5xx. */
const RETRY_DELAYS_MS = [10_000, 60_000, ...Array.from({ length: 6 }, () => 600_000)];
const TIMEOUT_MS = 10_000;
/** Beyond this number the oldest delivery is removed. */
const MAX_RETAINED_DELIVERIES = 10_000;

/** With `reordered`, events are held back until an event has one of these types. */
const FINAL_EVENT_TYPES = new Set(['InvoicePaymentSettled', 'InvoiceSettled']);

export interface BtcPayWebhook {
  readonly id: string;
  readonly url: string;
  readonly secret: string;
  readonly enabled: boolean;
  readonly automaticRedelivery: boolean;
}

export interface WebhookDelivery {
  readonly id: string;
  readonly webhookId: string;
  readonly body: Record<string, unknown>;
  httpCode: number | null;
}

export class BtcPayWebhooks {
  private readonly all = new Map<string, BtcPayWebhook>();
  private readonly deliveriesById = new Map<string, WebhookDelivery>();
  private readonly queues = new Map<string, Promise<void>>();
  /** Events that are held back because of the report mode `reordered`, by the id of their invoice. */
  private readonly delayedEvents = new Map<string, readonly object[]>();
  private readonly closing = new AbortController();

  add(terms: Omit<BtcPayWebhook, 'id'>): BtcPayWebhook {
    const webhook = { id: newId(), ...terms };
    this.all.set(webhook.id, webhook);
    return webhook;
  }

  list(): readonly BtcPayWebhook[] {
    return [...this.all.values()];
  }

  remove(id: string): boolean {
    return this.all.delete(id);
  }

  listDeliveries(webhookId: string): readonly WebhookDelivery[] {
    return [...this.deliveriesById.values()].filter((delivery) => delivery.webhookId === webhookId).reverse();
  }

  /**
   * Sends the events of an invoice that were held back, and then the new ones. With `reordered`, all are held back
   * until a new one has a type of FINAL_EVENT_TYPES, and then sent in reverse order. With `never`, nothing is sent, and
   * the new ones are dropped.
   */
  report(invoiceId: string, events: readonly { readonly type: string }[], report: ReportMode): void {
    if (report === 'never') return;
    const all = [...(this.delayedEvents.get(invoiceId) ?? []), ...events];
    const isHeld = report === 'reordered' && !events.some(({ type }) => FINAL_EVENT_TYPES.has(type));
    if (isHeld) this.delayedEvents.set(invoiceId, all);
    else this.delayedEvents.delete(invoiceId);
    if (!isHeld) this.send(report === 'reordered' ? all.toReversed() : all, report);
  }

  /** @returns the id of the new delivery; undefined if the delivery or its webhook is unknown */
  redeliver(deliveryId: string): string | undefined {
    const redelivery = this.createRedelivery(deliveryId);
    const webhook = redelivery && this.all.get(redelivery.webhookId);
    if (!redelivery || !webhook) return undefined;
    this.enqueue(webhook, () => this.deliver(webhook, redelivery, webhook.secret));
    return redelivery.id;
  }

  close(): void {
    this.closing.abort();
  }

  private send(events: readonly object[], report: ReportMode): void {
    for (const webhook of this.all.values()) {
      if (!webhook.enabled) continue;
      const secret = report === 'forged' ? `not ${webhook.secret}` : webhook.secret;
      for (const event of events) {
        const delivery = this.createDelivery(webhook, event);
        this.enqueue(webhook, () => this.deliverUntilAccepted(webhook, delivery, secret));
        if (report === 'twice') this.redeliver(delivery.id);
      }
    }
  }

  private enqueue(webhook: BtcPayWebhook, send: () => Promise<unknown>): void {
    const before = this.queues.get(webhook.id) ?? Promise.resolve();
    const after = before.then(send).then(ignore, ignore); // sending only fails when the sandbox closes
    this.queues.set(webhook.id, after);
  }

  private createDelivery({ id: webhookId }: BtcPayWebhook, event: object): WebhookDelivery {
    const id = newId();
    const head = { deliveryId: id, webhookId, originalDeliveryId: id, isRedelivery: false };
    return this.store({ id, webhookId, body: { ...head, ...event }, httpCode: null });
  }

  private createRedelivery(deliveryId: string): WebhookDelivery | undefined {
    const original = this.deliveriesById.get(deliveryId);
    if (!original) return undefined;
    const id = newId();
    return this.store({
      ...original,
      id,
      body: { ...original.body, deliveryId: id, isRedelivery: true },
      httpCode: null,
    });
  }

  private store(delivery: WebhookDelivery): WebhookDelivery {
    this.deliveriesById.set(delivery.id, delivery);
    const oldest = this.deliveriesById.keys().next().value;
    if (this.deliveriesById.size > MAX_RETAINED_DELIVERIES && oldest !== undefined) this.deliveriesById.delete(oldest);
    return delivery;
  }

  private async deliverUntilAccepted(webhook: BtcPayWebhook, first: WebhookDelivery, secret: string): Promise<void> {
    let accepted = await this.deliver(webhook, first, secret);
    for (const wait of webhook.automaticRedelivery ? RETRY_DELAYS_MS : []) {
      if (accepted) return;
      await delay(wait, undefined, { ref: false, signal: this.closing.signal });
      const next = this.createRedelivery(first.id);
      if (!next || !this.all.has(webhook.id)) return;
      accepted = await this.deliver(webhook, next, secret);
    }
  }

  /** @returns whether the delivery is final, so that it is not repeated */
  private async deliver({ url }: BtcPayWebhook, delivery: WebhookDelivery, secret: string): Promise<boolean> {
    const body = Buffer.from(JSON.stringify(delivery.body, undefined, 2));
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const headers = { 'content-type': 'application/json', 'BTCPay-Sig': `sha256=${signature}` };
    const signal = AbortSignal.any([this.closing.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    try {
      const response = await fetch(url, { method: 'POST', headers, body, signal });
      await response.arrayBuffer();
      delivery.httpCode = response.status;
    } catch {
      delivery.httpCode = null; // no response, which counts as a failure
    }
    const { httpCode } = delivery;
    return httpCode !== null && httpCode < 500 && httpCode !== 408 && httpCode !== 429;
  }
}

function ignore(): void {}

function newId(): string {
  return base58.encode(randomBytes(16));
}
