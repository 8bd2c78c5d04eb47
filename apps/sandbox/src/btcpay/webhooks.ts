/**
 * The web hooks of a simulated BTCPay Server: one queue for each, in order, repeated while nobody accepts. Facts: its
 * `WebhookSender` and its description of the Greenfield API.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { base58 } from '@scure/base';
import type { Report } from '../report.ts';

/** When a delivery is repeated that got no answer, or 408, 429 or 5xx. */
const REPEATED_AFTER_MS = [10_000, 60_000, ...Array.from({ length: 6 }, () => 600_000)];
const TIMEOUT_MS = 10_000;
/** What has gone out and can be looked at. */
const MAX_KEPT = 10_000;

/** The events that say that nothing further is to be expected for now. */
const FINAL = new Set(['InvoicePaymentSettled', 'InvoiceSettled']);

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
  private readonly sent = new Map<string, WebhookDelivery>();
  private readonly queues = new Map<string, Promise<void>>();
  /** Of invoices whose web hooks come in the wrong order: what waits for what happened later. */
  private readonly held = new Map<string, readonly object[]>();
  private readonly closing = new AbortController();

  add(terms: Omit<BtcPayWebhook, 'id'>): BtcPayWebhook {
    const hook = { id: newId(), ...terms };
    this.all.set(hook.id, hook);
    return hook;
  }

  list(): readonly BtcPayWebhook[] {
    return [...this.all.values()];
  }

  remove(id: string): boolean {
    return this.all.delete(id);
  }

  deliveries(webhookId: string): readonly WebhookDelivery[] {
    return [...this.sent.values()].filter((each) => each.webhookId === webhookId).reverse();
  }

  /** Sends what happened with an invoice. */
  report(invoiceId: string, happened: readonly { readonly type: string }[], report: Report): void {
    if (report === 'never') return;
    const all = [...(this.held.get(invoiceId) ?? []), ...happened];
    const isHeld = report === 'reordered' && !happened.some(({ type }) => FINAL.has(type));
    if (isHeld) this.held.set(invoiceId, all);
    else this.held.delete(invoiceId);
    if (!isHeld) this.send(report === 'reordered' ? all.toReversed() : all, report);
  }

  /** @returns the id of the new delivery; undefined when there is no such delivery */
  redeliver(deliveryId: string): string | undefined {
    const again = this.again(deliveryId);
    const hook = again && this.all.get(again.webhookId);
    if (!again || !hook) return undefined;
    this.enqueue(hook, () => this.deliver(hook, again, hook.secret));
    return again.id;
  }

  close(): void {
    this.closing.abort();
  }

  private send(happened: readonly object[], report: Report): void {
    for (const hook of this.all.values()) {
      if (!hook.enabled) continue;
      const secret = report === 'forged' ? `not ${hook.secret}` : hook.secret;
      for (const what of happened) {
        const delivery = this.first(hook, what);
        this.enqueue(hook, () => this.deliverUntilAccepted(hook, delivery, secret));
        if (report === 'twice') this.redeliver(delivery.id);
      }
    }
  }

  private enqueue(hook: BtcPayWebhook, send: () => Promise<unknown>): void {
    const before = this.queues.get(hook.id) ?? Promise.resolve();
    const after = before.then(send).then(nothing, nothing); // what fails here is what the end of the sandbox breaks off
    this.queues.set(hook.id, after);
  }

  private first({ id: webhookId }: BtcPayWebhook, what: object): WebhookDelivery {
    const id = newId();
    const head = { deliveryId: id, webhookId, originalDeliveryId: id, isRedelivery: false };
    return this.keep({ id, webhookId, body: { ...head, ...what }, httpCode: null });
  }

  private again(deliveryId: string): WebhookDelivery | undefined {
    const known = this.sent.get(deliveryId);
    if (!known) return undefined;
    const id = newId();
    return this.keep({ ...known, id, body: { ...known.body, deliveryId: id, isRedelivery: true }, httpCode: null });
  }

  private keep(delivery: WebhookDelivery): WebhookDelivery {
    this.sent.set(delivery.id, delivery);
    const oldest = this.sent.keys().next().value;
    if (this.sent.size > MAX_KEPT && oldest !== undefined) this.sent.delete(oldest);
    return delivery;
  }

  private async deliverUntilAccepted(hook: BtcPayWebhook, first: WebhookDelivery, secret: string): Promise<void> {
    let accepted = await this.deliver(hook, first, secret);
    for (const wait of hook.automaticRedelivery ? REPEATED_AFTER_MS : []) {
      if (accepted) return;
      await delay(wait, undefined, { ref: false, signal: this.closing.signal });
      const next = this.again(first.id);
      if (!next || !this.all.has(hook.id)) return;
      accepted = await this.deliver(hook, next, secret);
    }
  }

  /** @returns whether it is not to be repeated */
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
      delivery.httpCode = null; // nobody answered, which BTCPay repeats
    }
    const { httpCode } = delivery;
    return httpCode !== null && httpCode < 500 && httpCode !== 408 && httpCode !== 429;
  }
}

function nothing(): void {}

function newId(): string {
  return base58.encode(randomBytes(16));
}
