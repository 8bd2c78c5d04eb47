/** The state of a simulated Lightning node: its invoices and their payments. */
import { createHash, randomBytes } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { countReports, type ReportMode } from '../report.ts';
import { encodeInvoice } from './bolt11.ts';

/** LND's default: minimum number of blocks for the last hop. */
export const MIN_FINAL_CLTV = 80;

export type InvoiceState = 'OPEN' | 'SETTLED' | 'CANCELED';

export interface LightningInvoice {
  readonly addIndex: number;
  readonly preimage: Buffer;
  readonly hash: Buffer;
  readonly paymentAddress: Buffer;
  readonly memo: string;
  readonly msat: bigint;
  /** Unix seconds. */
  readonly created: number;
  readonly expirySeconds: number;
  readonly paymentRequest: string;
  readonly payment: LightningPayment | undefined;
}

export interface LightningPayment {
  readonly msat: bigint;
  /** Unix seconds. */
  readonly at: number;
  readonly settleIndex: number;
  /** How the payment is reported. An actual node reports it once. */
  readonly report: ReportMode;
}

type Listener = (invoice: LightningInvoice) => void;

export class LightningNode {
  readonly publicKey: string;
  private readonly privateKey: Uint8Array;
  private readonly byHash = new Map<string, LightningInvoice>();
  /** Hashes in the order in which the invoices were settled. */
  private readonly settled: string[] = [];
  private readonly byRequest = new Map<string, string>();
  private readonly listeners = new Set<Listener>();
  private readonly watchers: Listener[] = [];
  private readonly now: () => number;

  /** @param now returns milliseconds since 1970 */
  constructor(now: () => number = Date.now) {
    const { secretKey, publicKey } = secp256k1.keygen();
    this.privateKey = secretKey;
    this.publicKey = Buffer.from(publicKey).toString('hex');
    this.now = now;
  }

  getUnixTime(): number {
    return Math.floor(this.now() / 1000);
  }

  issue({ msat, memo, expirySeconds }: Pick<LightningInvoice, 'msat' | 'memo' | 'expirySeconds'>): LightningInvoice {
    const preimage = randomBytes(32);
    const hash = createHash('sha256').update(preimage).digest();
    const paymentAddress = randomBytes(32);
    const created = this.getUnixTime();
    const terms = {
      msat,
      timestamp: created,
      paymentHash: hash,
      paymentSecret: paymentAddress,
      description: memo,
      expirySeconds,
      minFinalCltv: MIN_FINAL_CLTV,
    };
    const paymentRequest = encodeInvoice(terms, this.privateKey);
    const addIndex = this.byHash.size + 1;
    const base = { addIndex, preimage, hash, paymentAddress, memo, msat, created, expirySeconds, paymentRequest };
    const invoice: LightningInvoice = { ...base, payment: undefined };
    this.byHash.set(hash.toString('hex'), invoice);
    this.byRequest.set(paymentRequest, hash.toString('hex'));
    this.notify(invoice);
    return invoice;
  }

  /** @param hash lower-case hexadecimal */
  find(hash: string): LightningInvoice | undefined {
    return this.byHash.get(hash);
  }

  /** @param paymentRequest exactly as issued */
  findByRequest(paymentRequest: string): LightningInvoice | undefined {
    return this.byHash.get(this.byRequest.get(paymentRequest) ?? '');
  }

  /** An unpaid invoice is cancelled when it expires. */
  getState({ payment, created, expirySeconds }: LightningInvoice): InvoiceState {
    if (payment) return 'SETTLED';
    return this.getUnixTime() < created + expirySeconds ? 'OPEN' : 'CANCELED';
  }

  /**
   * Settles an invoice, even an expired one: the wallet decides whether to pay.
   * @throws Error if the invoice is unknown or already paid
   */
  settle({ hash }: LightningInvoice, { msat, at, report }: Omit<LightningPayment, 'settleIndex'>): LightningInvoice {
    const key = hash.toString('hex');
    const existing = this.byHash.get(key);
    if (!existing || existing.payment) throw new Error('only an unpaid invoice can be settled');
    this.settled.push(key);
    const invoice = { ...existing, payment: { msat, at, report, settleIndex: this.settled.length } };
    this.byHash.set(key, invoice);
    for (let times = countReports(report); times > 0; times--) this.notify(invoice);
    for (const watcher of this.watchers) watcher(invoice);
    return invoice;
  }

  listAddedInvoices(afterIndex: number): LightningInvoice[] {
    return [...this.byHash.values()].slice(afterIndex);
  }

  listSettledInvoices(afterIndex: number): LightningInvoice[] {
    return this.settled.slice(afterIndex).flatMap((hash) => {
      const invoice = this.byHash.get(hash);
      return invoice ? Array.from({ length: countReports(invoice.payment?.report ?? 'never') }, () => invoice) : [];
    });
  }

  /**
   * Calls the listener for each added invoice, and for each payment as often as its report mode says. Returns a
   * function that unsubscribes.
   */
  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Calls the watcher once for each payment, even one that subscriptions do not report. */
  onSettled(watcher: Listener): void {
    this.watchers.push(watcher);
  }

  private notify(invoice: LightningInvoice): void {
    for (const listener of this.listeners) listener(invoice);
  }
}
