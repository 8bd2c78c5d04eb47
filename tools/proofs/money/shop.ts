/** A customer's side of the built program: invoices, what has come for them, and what is in the account. */
import { type Customer, type ProofCluster, post } from '../../cluster.ts';

/** What is paid is looked at every minute, and a payment must have been missing twice. */
const HAPPENS_WITHIN_MS = 200_000;
const POLL_INTERVAL_MS = 100;
/** Longer than until the wallet has seen a block, and is looked at. */
const UNCHANGED_FOR_MS = 8_000;

export interface ShopInvoice {
  readonly customer: Customer;
  readonly id: string;
  /** What is paid to: an address, or a Lightning invoice. */
  readonly to: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export class Shop {
  private failed = 0;

  constructor(
    private readonly cluster: ProofCluster,
    private readonly print: (line: string) => void,
  ) {}

  /** Whether everything was as it should be. */
  get hasPassed(): boolean {
    return this.failed === 0;
  }

  /** An invoice of a new account. */
  async createInvoice(amount: number, currency: string, method: string): Promise<ShopInvoice> {
    const customer = await this.cluster.createCustomer(0);
    const [api = ''] = this.cluster.gateways;
    const createdInvoice = await post(`${api}/topup/create/${method}`, { amount, currency }, customer.apiKey);
    const to = createdInvoice.address ?? createdInvoice.lightning_invoice;
    if (typeof to !== 'string') throw new Error(`no invoice: ${JSON.stringify(createdInvoice)}`);
    return { customer, id: String(createdInvoice.invoice_id), to, expiresAt: Number(createdInvoice.expires_at) };
  }

  async fetchStatus({ id }: ShopInvoice): Promise<string> {
    const response = await fetch(`${this.cluster.gateways[0]}/topup/status/${id}`);
    return ((await response.json()) as { status: string }).status;
  }

  /** Waits until the invoice has the status and its account the balance, and prints whether that came. */
  async expectStatus(what: string, invoice: ShopInvoice, status: string, usd: number): Promise<void> {
    const startedAt = performance.now();
    for (;;) {
      const actual = [await this.fetchStatus(invoice), (await this.cluster.fetchBalance(invoice.customer)).balance];
      const isSo = actual[0] === status && actual[1] === usd;
      const waited = performance.now() - startedAt;
      if (isSo || waited > HAPPENS_WITHIN_MS) {
        const after = `${actual[0]}, ${actual[1]} USD, after ${(waited / 1000).toFixed(1)} s`;
        return this.report(what, isSo, after, `${status}, ${usd} USD`);
      }
      await sleep(POLL_INTERVAL_MS);
    }
  }

  /** Waits, and prints whether nothing has changed. */
  async expectUnchanged(what: string, invoice: ShopInvoice, status: string, usd: number): Promise<void> {
    await sleep(UNCHANGED_FOR_MS);
    const actual = [await this.fetchStatus(invoice), (await this.cluster.fetchBalance(invoice.customer)).balance];
    this.report(
      what,
      actual[0] === status && actual[1] === usd,
      `${actual[0]}, ${actual[1]} USD`,
      `${status}, ${usd} USD`,
    );
  }

  /** Sets what the sources of exchange rates say. */
  async setRates(rates: Readonly<Record<string, string>>): Promise<void> {
    const response = await fetch(`${this.cluster.sandbox}/rates`, { method: 'PUT', body: JSON.stringify(rates) });
    if (!response.ok) throw new Error(`the rates are refused: ${await response.text()}`);
  }

  /** What looks for payments is dead meanwhile. */
  async runWithoutPolling(action: () => Promise<void>): Promise<void> {
    await this.cluster.processes.get('sagas')?.kill();
    await action();
    await this.cluster.startRole('sagas');
  }

  report(what: string, isSo: boolean, actual: string, expected: string): void {
    if (!isSo) this.failed++;
    this.print(`${isSo ? 'ok' : 'FAILED'}: ${what}: ${actual}${isSo ? '' : `, not ${expected}`}`);
  }
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
