/** Calls the API as customers do: creates invoices, and checks their status and the account's balance. */
import { type Customer, type ProofCluster, post } from '../../cluster.ts';

/** Paid invoices are polled every minute, and a payment counts as lost after it was missing twice. */
const HAPPENS_WITHIN_MS = 200_000;
const POLL_INTERVAL_MS = 100;
/** Longer than the wallet takes to process a block and the sagas take to poll the wallet. */
const UNCHANGED_FOR_MS = 8_000;

export interface ShopInvoice {
  readonly customer: Customer;
  readonly id: string;
  /** The address or Lightning invoice to pay. */
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

  /** Whether all checks so far have passed. */
  get hasPassed(): boolean {
    return this.failed === 0;
  }

  /** Creates an account with an invoice. */
  async createInvoice(amount: number, currency: string, method: string): Promise<ShopInvoice> {
    const customer = await this.cluster.createCustomer(0);
    const [api = ''] = this.cluster.gateways;
    const createdInvoice = await post(`${api}/topup/create/${method}`, { amount, currency }, customer.apiKey);
    const to = createdInvoice.address ?? createdInvoice.lightning_invoice;
    if (typeof to !== 'string') throw new Error(`no invoice was created: ${JSON.stringify(createdInvoice)}`);
    return { customer, id: String(createdInvoice.invoice_id), to, expiresAt: Number(createdInvoice.expires_at) };
  }

  async fetchStatus({ id }: ShopInvoice): Promise<string> {
    const response = await fetch(`${this.cluster.gateways[0]}/topup/status/${id}`);
    return ((await response.json()) as { status: string }).status;
  }

  /** Waits, at most 200 s, until the invoice has the status and its account has the balance, then prints the result. */
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

  /** Waits some seconds, then prints whether status and balance still have the expected values. */
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

  /** Sets the rates that the exchange rate sources of the sandbox return. */
  async setRates(rates: Readonly<Record<string, string>>): Promise<void> {
    const response = await fetch(`${this.cluster.sandbox}/rates`, { method: 'PUT', body: JSON.stringify(rates) });
    if (!response.ok) throw new Error(`the sandbox rejected the rates: ${await response.text()}`);
  }

  /** Runs the action while the sagas, which poll for payments, are down. */
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
