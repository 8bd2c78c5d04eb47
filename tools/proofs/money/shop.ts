/** A customer's side of the built program: invoices, what has come for them, and what is in the account. */
import { type Customer, type ProofCluster, post } from '../../cluster.ts';

/** What is paid is looked at every minute, and a payment must have been missing twice. */
const HAPPENS_WITHIN_MS = 200_000;
const LOOK_AGAIN_MS = 100;
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
  get isSound(): boolean {
    return this.failed === 0;
  }

  /** An invoice of a new account. */
  async invoice(amount: number, currency: string, method: string): Promise<ShopInvoice> {
    const customer = await this.cluster.customer(0);
    const [api = ''] = this.cluster.gateways;
    const made = await post(`${api}/topup/create/${method}`, { amount, currency }, customer.apiKey);
    const to = made.address ?? made.lightning_invoice;
    if (typeof to !== 'string') throw new Error(`no invoice: ${JSON.stringify(made)}`);
    return { customer, id: String(made.invoice_id), to, expiresAt: Number(made.expires_at) };
  }

  async status({ id }: ShopInvoice): Promise<string> {
    const answer = await fetch(`${this.cluster.gateways[0]}/topup/status/${id}`);
    return ((await answer.json()) as { status: string }).status;
  }

  /** Waits until the invoice has the status and its account the balance, and prints whether that came. */
  async becomes(what: string, invoice: ShopInvoice, status: string, usd: number): Promise<void> {
    const began = performance.now();
    for (;;) {
      const is = [await this.status(invoice), (await this.cluster.balance(invoice.customer)).balance];
      const isSo = is[0] === status && is[1] === usd;
      const waited = performance.now() - began;
      if (isSo || waited > HAPPENS_WITHIN_MS) {
        const after = `${is[0]}, ${is[1]} USD, after ${(waited / 1000).toFixed(1)} s`;
        return this.told(what, isSo, after, `${status}, ${usd} USD`);
      }
      await sleep(LOOK_AGAIN_MS);
    }
  }

  /** Waits, and prints whether nothing has changed. */
  async stays(what: string, invoice: ShopInvoice, status: string, usd: number): Promise<void> {
    await sleep(UNCHANGED_FOR_MS);
    const is = [await this.status(invoice), (await this.cluster.balance(invoice.customer)).balance];
    this.told(what, is[0] === status && is[1] === usd, `${is[0]}, ${is[1]} USD`, `${status}, ${usd} USD`);
  }

  /** Sets what the sources of exchange rates say. */
  async rate(rates: Readonly<Record<string, string>>): Promise<void> {
    const response = await fetch(`${this.cluster.sandbox}/rates`, { method: 'PUT', body: JSON.stringify(rates) });
    if (!response.ok) throw new Error(`the rates are refused: ${await response.text()}`);
  }

  /** What looks for payments is dead meanwhile. */
  async whileNobodyLooks(act: () => Promise<void>): Promise<void> {
    await this.cluster.processes.get('sagas')?.kill();
    await act();
    await this.cluster.startRole('sagas');
  }

  told(what: string, isSo: boolean, is: string, expected: string): void {
    if (!isSo) this.failed++;
    this.print(`${isSo ? 'ok' : 'FAILED'}: ${what}: ${is}${isSo ? '' : `, not ${expected}`}`);
  }
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
