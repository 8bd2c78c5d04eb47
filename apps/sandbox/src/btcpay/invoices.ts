/**
 * The invoices of a simulated BTCPay Server and their status. Sources: BTCPay Server 2.4 (`InvoiceWatcher`,
 * `NBXplorerListener`, `LightningListener`) and the description of its Greenfield API.
 */
import { randomBytes } from 'node:crypto';
import { base58 } from '@scure/base';
import type { Chain, Chains, Transaction } from '../chains/chain.ts';
import type { LightningNode } from '../lightning/node.ts';
import type { ReportMode } from '../report.ts';

/** Confirmations after which a payment is settled, by speed policy. */
export const SPEED_POLICIES: Readonly<Record<string, number>> = {
  HighSpeed: 0,
  MediumSpeed: 1,
  LowMediumSpeed: 2,
  LowSpeed: 6,
};

export type Status = 'New' | 'Processing' | 'Expired' | 'Invalid' | 'Settled';
export type AdditionalStatus = 'None' | 'PaidLate' | 'PaidPartial' | 'PaidOver';

export interface BtcPayPayment {
  /** `<txid>-<output>`; with Monero's plug-in `<txid>#<account>#<subaddress>`; for Lightning the payment hash. */
  readonly id: string;
  readonly units: bigint;
  /** Unix seconds. */
  readonly receivedAt: number;
  readonly destination: string;
  status: 'Invalid' | 'Processing' | 'Settled';
}

/** The properties of a new invoice. */
export interface BtcPayInvoiceTerms {
  readonly coin: string;
  readonly kind: 'CHAIN' | 'LN';
  /** In the coin's smallest unit on its chain; in millisatoshis for Lightning. */
  readonly units: bigint;
  readonly decimals: number;
  readonly speedPolicy: string;
  readonly expirySeconds: number;
  readonly monitoringSeconds: number;
  readonly paymentTolerance: number;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface BtcPayInvoice {
  readonly id: string;
  readonly terms: BtcPayInvoiceTerms;
  readonly destination: string;
  /** Unix seconds, like `expires` and `monitoringEnds`. */
  readonly created: number;
  readonly expires: number;
  readonly monitoringEnds: number;
  readonly payments: Map<string, BtcPayPayment>;
  status: Status;
  additionalStatus: AdditionalStatus;
}

/** An event that webhooks report about an invoice. */
export interface BtcPayInvoiceEvent {
  readonly type: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly payment?: BtcPayPayment;
}

type Listener = (invoice: BtcPayInvoice, events: readonly BtcPayInvoiceEvent[], report: ReportMode) => void;

/** A payment as the chain or the Lightning node reports it. */
interface ObservedPayment extends Omit<BtcPayPayment, 'status'> {
  readonly confirmations: number;
  readonly isDropped: boolean;
  readonly report: ReportMode;
}

export class Invoices {
  private readonly byId = new Map<string, BtcPayInvoice>();
  private readonly byDestination = new Map<string, BtcPayInvoice>();
  private readonly byOrder = new Map<string, BtcPayInvoice[]>();
  private readonly listeners: Listener[] = [];
  private readonly chains: Chains;
  private readonly node: LightningNode;

  constructor(chains: Chains, node: LightningNode) {
    this.chains = chains;
    this.node = node;
    chains.subscribe((_, { outputs, report }) => {
      for (const { address } of outputs) this.refreshByDestination(address, report);
    });
    node.onSettled(({ paymentRequest, payment }) =>
      this.refreshByDestination(paymentRequest, payment?.report ?? 'once'),
    );
  }

  create(terms: BtcPayInvoiceTerms): BtcPayInvoice {
    const created = this.node.getUnixTime();
    const expires = created + terms.expirySeconds;
    const invoice: BtcPayInvoice = {
      id: base58.encode(randomBytes(16)),
      terms,
      destination: this.createDestination(terms),
      created,
      expires,
      monitoringEnds: expires + terms.monitoringSeconds,
      payments: new Map(),
      status: 'New',
      additionalStatus: 'None',
    };
    this.byId.set(invoice.id, invoice);
    this.byDestination.set(invoice.destination, invoice);
    const order = String(terms.metadata.orderId ?? '');
    this.byOrder.set(order, [invoice, ...(this.byOrder.get(order) ?? [])]);
    this.notify(invoice, [{ type: 'InvoiceCreated', details: {} }], 'once');
    return invoice;
  }

  find(id: string): BtcPayInvoice | undefined {
    const invoice = this.byId.get(id);
    if (invoice) this.refresh(invoice, 'once');
    return invoice;
  }

  /** The invoices of one order are sorted newest first. */
  listByOrderIds(orderIds: ReadonlySet<string>): readonly BtcPayInvoice[] {
    const invoices = [...orderIds].flatMap((id) => this.byOrder.get(id) ?? []);
    for (const invoice of invoices) this.refresh(invoice, 'once');
    return invoices;
  }

  subscribe(listener: Listener): void {
    this.listeners.push(listener);
  }

  private createDestination({ coin, kind, units, metadata, expirySeconds }: BtcPayInvoiceTerms): string {
    if (kind === 'CHAIN') return this.chains.getChain(coin).createAddress();
    const memo = `Order ${metadata.orderId ?? ''}`;
    return this.node.issue({ msat: units, memo, expirySeconds }).paymentRequest;
  }

  private refreshByDestination(destination: string, report: ReportMode): void {
    const invoice = this.byDestination.get(destination);
    if (invoice) this.refresh(invoice, report);
  }

  /**
   * Updates an invoice from its payments and the clock. Before a new payment is added, the status advances to the time
   * at which this payment was received. Afterwards the status advances to the later of two times: the clock, and the
   * time of the newest payment. The latter is capped at the expiry of the invoice.
   */
  private refresh(invoice: BtcPayInvoice, report: ReportMode): void {
    const events: BtcPayInvoiceEvent[] = [];
    const { payments, expires, monitoringEnds } = invoice;
    // BTCPay checks a settled payment again only while its invoice is open or another payment is processing.
    const isMonitored = isOpen(invoice) || [...payments.values()].some(({ status }) => status === 'Processing');
    for (const observed of this.getObservedPayments(invoice)) {
      const existing = payments.get(observed.id);
      if (existing && (isMonitored || existing.status !== 'Settled')) settle(invoice, existing, observed, events);
      if (existing || observed.isDropped) continue;
      advance(invoice, observed.receivedAt, events);
      const { id, units, receivedAt, destination } = observed;
      const payment: BtcPayPayment = { id, units, receivedAt, destination, status: 'Processing' };
      payments.set(id, payment);
      events.push({ type: 'InvoiceReceivedPayment', details: { afterExpiration: isClosed(invoice) }, payment });
      settle(invoice, payment, observed, events);
    }
    const newest = Math.max(...[...payments.values()].map((payment) => payment.receivedAt), 0);
    advance(invoice, Math.max(this.node.getUnixTime(), Math.min(newest, expires, monitoringEnds)), events);
    if (events.length > 0) this.notify(invoice, events, report);
  }

  private getObservedPayments(invoice: BtcPayInvoice): readonly ObservedPayment[] {
    const { terms, destination } = invoice;
    if (terms.kind === 'LN') return this.getLightningPayments(destination);
    const chain = this.chains.getChain(terms.coin);
    return chain
      .listTransactionsTo(destination)
      .flatMap((transaction) => getOutputPayments(destination, transaction, chain));
  }

  private getLightningPayments(paymentRequest: string): readonly ObservedPayment[] {
    const invoice = this.node.findByRequest(paymentRequest);
    if (!invoice?.payment) return [];
    const { msat, at, report } = invoice.payment;
    const id = invoice.hash.toString('hex');
    const destination = paymentRequest;
    const settled = { confirmations: Number.POSITIVE_INFINITY, isDropped: false };
    return [{ id, units: msat, receivedAt: at, destination, report, ...settled }];
  }

  private notify(invoice: BtcPayInvoice, events: readonly BtcPayInvoiceEvent[], report: ReportMode): void {
    for (const listener of this.listeners) listener(invoice, events, report);
  }
}

function getOutputPayments(destination: string, transaction: Transaction, chain: Chain): readonly ObservedPayment[] {
  const { id: txid, outputs, seenAt, isDropped, report } = transaction;
  const confirmations = chain.countConfirmations(transaction);
  const receivedAt = Math.floor(seenAt / 1000);
  return outputs.flatMap(({ address, units }, index) => {
    if (address !== destination) return [];
    const id = chain.network.coin === 'XMR' ? `${txid}#0#1` : `${txid}-${index}`;
    return [{ id, units, receivedAt, destination, confirmations, isDropped, report }];
  });
}

function settle(
  invoice: BtcPayInvoice,
  payment: BtcPayPayment,
  { confirmations, isDropped }: ObservedPayment,
  events: BtcPayInvoiceEvent[],
): void {
  const before = payment.status;
  const isConfirmed = confirmations >= (SPEED_POLICIES[invoice.terms.speedPolicy] ?? 0);
  payment.status = isDropped ? 'Invalid' : isConfirmed ? 'Settled' : 'Processing';
  if (payment.status === before || payment.status !== 'Settled') return;
  events.push({ type: 'InvoicePaymentSettled', details: { afterExpiration: isClosed(invoice) }, payment });
}

function isClosed({ status }: BtcPayInvoice): boolean {
  return status === 'Expired' || status === 'Invalid';
}

function isOpen({ status }: BtcPayInvoice): boolean {
  return status === 'New' || status === 'Processing';
}

/** Updates the status from payments and time. An expired invoice stays expired, whatever is paid. */
function advance(invoice: BtcPayInvoice, at: number, events: BtcPayInvoiceEvent[]): void {
  const { expires, monitoringEnds } = invoice;
  const { paid, settled, due, any } = calculateTotals(invoice);
  const isOverpaid = paid > invoice.terms.units;
  if (invoice.status === 'New' && at >= expires) {
    const partiallyPaid = invoice.additionalStatus === 'PaidPartial';
    invoice.status = 'Expired';
    events.push({ type: 'InvoiceExpired', details: { partiallyPaid } });
    if (partiallyPaid) events.push({ type: 'InvoiceExpiredPaidPartial', details: {} });
  }
  if (invoice.status === 'New' && paid >= due) {
    invoice.status = 'Processing';
    invoice.additionalStatus = isOverpaid ? 'PaidOver' : 'None';
    events.push({ type: 'InvoiceProcessing', details: { overPaid: isOverpaid } });
  } else if (invoice.status === 'Expired' && paid >= due && invoice.additionalStatus !== 'PaidLate') {
    invoice.additionalStatus = 'PaidLate';
    events.push({ type: 'InvoicePaidAfterExpiration', details: {} });
  } else if ((invoice.status === 'New' || invoice.status === 'Expired') && any && paid < due) {
    invoice.additionalStatus = 'PaidPartial';
  }
  if (invoice.status !== 'Processing') return;
  if (paid < due) {
    invoice.status = 'New'; // a payment was replaced or reversed
    invoice.additionalStatus = any ? 'PaidPartial' : 'None';
    return;
  }
  invoice.additionalStatus = isOverpaid ? 'PaidOver' : 'None';
  if (settled >= due) {
    invoice.status = 'Settled';
    events.push({ type: 'InvoiceSettled', details: { manuallyMarked: false, overPaid: isOverpaid } });
  } else if (at > monitoringEnds) {
    invoice.status = 'Invalid';
    events.push({ type: 'InvoiceInvalid', details: { manuallyMarked: false } });
  }
}

/** Sums the valid payments, and separately the settled ones. `due` is the requested amount less the tolerance. */
export function calculateTotals({ terms, payments }: BtcPayInvoice) {
  const validPayments = [...payments.values()].filter(({ status }) => status !== 'Invalid');
  const sum = (selectedPayments: readonly BtcPayPayment[]) =>
    selectedPayments.reduce((total, { units }) => total + units, 0n);
  const tolerated = (terms.units * BigInt(Math.round(terms.paymentTolerance * 100))) / 10_000n;
  const settled = sum(validPayments.filter(({ status }) => status === 'Settled'));
  return { paid: sum(validPayments), settled, due: terms.units - tolerated, any: validPayments.length > 0 };
}
