/** The outside world of payments: a Lightning node and a wallet for coins, as their customers and our processes see it. */
import { hash } from 'node:crypto';
import {
  type BackendPayment,
  type CreatedPayment,
  ExchangeRates,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
} from '#application';
import { encodeInvoice } from '../../../../apps/sandbox/src/lightning/bolt11.ts';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { SimulatedTime } from './simulated-time.ts';

const MIN_FINAL_CLTV = 80;
const NETWORK_MS = { min: 5, max: 200 };
const MAX_HINT_DELAY_MS = 3_000;
/** Names of payment backends for each kind of destination, as in payments.json. */
export const BACKENDS = { bolt11: 'lnd', address: 'btcpay', page: 'stripe' } as const;

/** How often calls of payment backends fail, from 0 to 1. */
export interface PaymentFaults {
  readonly failedCall: number;
  /** The invoice is created, but the response is lost. */
  readonly lostInvoice: number;
  readonly lostHint: number;
}

export const NO_PAYMENT_FAULTS: PaymentFaults = { failedCall: 0, lostInvoice: 0, lostHint: 0 };

interface Invoice extends CreatedPayment {
  readonly kind: PaymentRequest['kind'];
  readonly units: bigint;
  readonly expiresAtMs: number;
  readonly payments: Map<string, BackendPayment>;
}

export interface NetworkOptions {
  readonly time: SimulatedTime;
  readonly chance: Chance;
  readonly startMs: number;
  /** Returns the faults that occur now. */
  getFaults(): PaymentFaults;
}

/** The servers of the payment backends: what was invoiced, and what was paid. */
export class PaymentNetwork {
  private readonly invoices = new Map<string, Invoice>();
  private readonly referenceByRequest = new Map<string, string>();
  private readonly listeners = new Set<(reference: string) => void>();
  /** When payments became final, by payment backend and id. */
  readonly finalTimesMs = new Map<string, number>();

  constructor(readonly options: NetworkOptions) {}

  /** Returns the same invoice for a repeated request. */
  create(request: PaymentRequest): CreatedPayment {
    const { topupId, kind, units, expirySeconds } = request;
    const { time, chance, startMs } = this.options;
    const preimage = chance.bytes(32, `preimage ${topupId}`);
    const reference = hash('sha256', Buffer.from(preimage));
    const existing = this.invoices.get(reference);
    if (existing) return existing;
    const value = kind === 'bolt11' ? this.encode(request, reference, preimage) : `${kind} ${reference}`;
    const expiresAtMs = startMs + time.nowMs + expirySeconds * 1_000;
    const paymentHash = kind === 'bolt11' ? { paymentHash: reference } : {};
    const destination = { kind, value };
    const invoice = { reference, destination, ...paymentHash, kind, units, expiresAtMs, payments: new Map() };
    this.invoices.set(reference, invoice);
    this.referenceByRequest.set(value, reference);
    return invoice;
  }

  get(reference: string): Invoice | undefined {
    return this.invoices.get(reference);
  }

  /** Returns the name of the payment backend of an invoice. */
  getBackend(reference: string): string {
    return BACKENDS[this.invoices.get(reference)?.kind ?? 'bolt11'];
  }

  listPayments(references: readonly string[]): readonly BackendPayment[] {
    return references.flatMap((reference) => [...(this.invoices.get(reference)?.payments.values() ?? [])]);
  }

  /** All payments of all invoices. */
  get payments(): readonly BackendPayment[] {
    return this.listPayments([...this.invoices.keys()]);
  }

  /** Records a payment, or the new state of one, and notifies the subscribers. */
  report(payment: BackendPayment): void {
    const invoice = this.invoices.get(payment.reference);
    if (!invoice) return;
    invoice.payments.set(payment.id, payment);
    const isFinal = payment.confirmations === 'final' || invoice.kind !== 'address';
    const key = `${this.getBackend(payment.reference)}/${payment.id}`;
    if (isFinal && !this.finalTimesMs.has(key)) this.finalTimesMs.set(key, this.options.time.nowMs);
    for (const listener of this.listeners) listener(payment.reference);
  }

  /** Pays a Lightning invoice. @returns false if it is unknown, paid or expired, so that the payment fails */
  tryToPay(paymentRequest: string): boolean {
    const reference = this.referenceByRequest.get(paymentRequest) ?? '';
    const invoice = this.invoices.get(reference);
    if (!invoice || invoice.payments.size > 0 || invoice.expiresAtMs <= Date.parse(this.now)) return false;
    this.report({ reference, id: reference, units: invoice.units, confirmations: 'final', receivedAt: this.now });
    return true;
  }

  /** ISO 8601. */
  get now(): string {
    const { time, startMs } = this.options;
    return new Date(Math.floor(startMs + time.nowMs)).toISOString();
  }

  onChange(listener: (reference: string) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  private encode({ units, memo, expirySeconds }: PaymentRequest, paymentHash: string, preimage: Uint8Array): string {
    const { time, chance, startMs } = this.options;
    const terms = {
      msat: units,
      timestamp: Math.floor((startMs + time.nowMs) / 1_000),
      paymentHash: Buffer.from(paymentHash, 'hex'),
      paymentSecret: preimage,
      description: memo,
      expirySeconds,
      minFinalCltv: MIN_FINAL_CLTV,
    };
    return encodeInvoice(terms, chance.bytes(32, 'key of the node'));
  }
}

/** A payment backend as one process reaches it. */
export class SimulatedBackend implements PaymentBackend {
  readonly maxBatchSize = 20;
  private calls = 0;

  constructor(
    readonly name: string,
    private readonly network: PaymentNetwork,
    private readonly process: SimulatedProcess,
  ) {}

  async createPayment(request: PaymentRequest): Promise<CreatedPayment> {
    const label = this.countCall('create');
    const { chance } = this.network.options;
    const created = await this.call(label, () => this.network.create(request));
    if (chance.isTrue(this.network.options.getFaults().lostInvoice, `${label} is lost`)) throw createFailure();
    return created;
  }

  fetchPayments(references: readonly string[]): Promise<readonly BackendPayment[]> {
    return this.call(this.countCall('fetch'), () => this.network.listPayments(references));
  }

  async *subscribe(signal: AbortSignal): AsyncGenerator<string> {
    const { chance, getFaults } = this.network.options;
    const { runtime } = this.process;
    const references: string[] = [];
    let wake = () => {};
    const stop = this.network.onChange((reference) => {
      const label = this.countCall(`hint ${reference}`);
      if (chance.isTrue(getFaults().lostHint, `${label} is lost`)) return;
      runtime.startTimer(chance.chooseSkewed(1, MAX_HINT_DELAY_MS, `${label} delay`), () => {
        references.push(reference);
        wake();
      });
    });
    const abort = () => wake();
    signal.addEventListener('abort', abort);
    try {
      while (!signal.aborted) {
        const reference = references.shift();
        if (reference !== undefined) yield reference;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      stop();
      signal.removeEventListener('abort', abort);
    }
  }

  async close(): Promise<void> {}

  private async call<T>(label: string, work: () => T): Promise<T> {
    const { time, chance, getFaults } = this.network.options;
    const delay = (what: string) => chance.chooseSkewed(NETWORK_MS.min, NETWORK_MS.max, `${label} ${what}`);
    const isFailed = chance.isTrue(getFaults().failedCall, `${label} fails`);
    const response = time.wait(delay('request')).then(() => {
      if (isFailed) throw createFailure();
      return work();
    });
    return this.process.receive(response, delay('response'));
  }

  private countCall(kind: string): string {
    return `${this.process.name} ${this.name} ${kind} ${this.calls++}`;
  }
}

function createFailure(): UpstreamError {
  return new UpstreamError('upstream_unavailable', 'The payment backend is unavailable');
}

/** Rates that never change. */
export class FixedRates extends ExchangeRates {
  constructor(private readonly getTime: () => string) {
    super();
  }

  async fetchUsdRate(code: string) {
    return { value: code === 'USD' ? '1' : '100', source: 'market', at: this.getTime() };
  }
}
