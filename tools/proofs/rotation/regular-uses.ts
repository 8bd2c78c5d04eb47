/** Top-ups and images at regular intervals, which need the credentials of payment backends and of a bucket. */
import { randomUUID } from 'node:crypto';
import { type Customer, type ProofCluster, post } from '../../cluster.ts';
import { waitUntil } from '../role-checks.ts';

const INTERVAL_MS = 1_000;
const TOP_UP_USD = 5;
const CONFIRMATIONS = 6;
const IMAGE_MODEL = 'black-forest-labs/flux-1-schnell';

/** Uses each service once per interval until it is stopped. */
export class RegularUses {
  readonly failures: string[] = [];
  /** The ids of the requests for images. */
  readonly imageIds: string[] = [];
  topUpCount = 0;
  private readonly running = new Set<Promise<void>>();
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly cluster: ProofCluster,
    private readonly api: string,
    private readonly customer: Customer,
  ) {
    this.timer = setInterval(() => {
      this.run('Lightning', () => this.topUp('btc-lightning', (order) => this.payInvoice(order)));
      this.run('Litecoin', () => this.topUp('ltc', (order) => this.payAddress(order)));
      this.run('image', () => this.createImage());
    }, INTERVAL_MS);
  }

  /** Waits for what is running. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await Promise.all(this.running);
  }

  private run(what: string, use: () => Promise<void>): void {
    const pendingUse = use()
      .catch((error: unknown) => void this.failures.push(`${what}: ${error}`))
      .finally(() => this.running.delete(pendingUse));
    this.running.add(pendingUse);
  }

  /** Creates an invoice, pays it, and waits until the payment is credited. */
  private async topUp(method: string, pay: (invoice: Readonly<Record<string, unknown>>) => Promise<void>) {
    const order = { amount: TOP_UP_USD, currency: 'USD' };
    const invoice = await post(`${this.api}/topup/create/${method}`, order, this.customer.apiKey);
    if (invoice.invoice_id === undefined) throw new Error(JSON.stringify(invoice));
    await pay(invoice);
    await waitUntil(async () => {
      const response = await fetch(`${this.api}/topup/status/${invoice.invoice_id}`);
      return ((await response.json()) as { status: string }).status === 'Settled';
    });
    this.topUpCount++;
  }

  private async payInvoice({ lightning_invoice }: Readonly<Record<string, unknown>>): Promise<void> {
    await post(`${this.cluster.sandbox}/wallet/pay`, { invoice: lightning_invoice });
  }

  private async payAddress({ address, crypto_amount_due }: Readonly<Record<string, unknown>>): Promise<void> {
    const sent = await post(`${this.cluster.sandbox}/wallet/send`, {
      coin: 'LTC',
      address,
      amount: String(crypto_amount_due),
    });
    if (sent.error !== undefined) throw new Error(JSON.stringify(sent));
    await post(`${this.cluster.sandbox}/chains/LTC/mine`, { blocks: CONFIRMATIONS });
  }

  /** Generates an image, which is stored in the bucket and downloaded from there. */
  private async createImage(): Promise<void> {
    const response = await fetch(`${this.api}/v1/images/generations`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${this.customer.apiKey}`,
        'idempotency-key': randomUUID(), // the response is stored in the content database
      },
      body: JSON.stringify({ model: IMAGE_MODEL, prompt: 'A lighthouse' }),
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    this.imageIds.push(String(response.headers.get('x-request-id')));
    const { data } = (await response.json()) as { readonly data: readonly [{ readonly url: string }] };
    const file = await fetch(data[0].url);
    if (!file.ok || (await file.bytes()).length === 0) throw new Error(`the download got ${file.status}`);
  }
}
