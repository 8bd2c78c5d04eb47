/** The sandbox's wallets, which pay the invoices of payment backends, and the miners of its chains. */
import type { CoinTerms, Destination } from '#domain';
import { money } from '#kernel';

/** At least as many confirmations as every payment method requires. */
const BLOCKS_TO_FINAL = 10;

const KEY = { authorization: 'token sandbox' };

export interface PayOptions {
  /** Unix seconds. */
  readonly receivedAt?: number;
  /** Whether the fee is too low for the transaction to be mined. */
  readonly lowFee?: boolean;
  /** Id of the transaction that this one replaces. */
  readonly replaces?: string;
  readonly report?: 'once' | 'twice' | 'reordered' | 'never' | 'forged';
}

export class SandboxWallet {
  constructor(private readonly sandbox: string) {}

  /** @returns the transaction id or payment hash @throws Error if the sandbox rejects the payment */
  async pay({ kind, value }: Destination, units: bigint, coin: CoinTerms, options: PayOptions = {}): Promise<string> {
    const { receivedAt, lowFee, replaces, report = 'once' } = options;
    if (kind === 'bolt11') {
      const afterExpiry = receivedAt === undefined ? {} : { late: true, settled_at: receivedAt };
      const order = { invoice: value, amount_msat: units.toString(), report, ...afterExpiry };
      return (await this.send<{ payment_hash: string }>('/wallet/pay', order)).payment_hash;
    }
    const paid = { coin: coin.code, address: value, amount: money.formatScaled(units, coin.decimals), report };
    const order = { ...paid, received_at: receivedAt, low_fee: lowFee, replaces };
    return (await this.send<{ txid: string }>('/wallet/send', order)).txid;
  }

  /** Mines blocks, by default enough to make waiting transactions final, except those with a low fee. */
  async mine(coin: CoinTerms, blocks = BLOCKS_TO_FINAL): Promise<void> {
    await this.send(`/chains/${coin.code}/mine`, { blocks });
  }

  /** Replaces a transaction permanently by one that pays someone else. */
  async undo(coin: CoinTerms, txid: string): Promise<void> {
    await this.send(`/chains/${coin.code}/undo`, { txid });
  }

  /** Configures a webhook URL in the sandbox's BTCPay Server, as an operator does. @returns the id of the webhook */
  async addWebhook(url: string): Promise<string> {
    return (await this.send<{ id: string }>('/btcpay/api/v1/stores/sandbox/webhooks', { url, secret: 'sandbox' })).id;
  }

  /** Returns whether the sandbox's BTCPay Server has delivered all events so far, the last one with success. */
  async isWebhookDelivered(id: string): Promise<boolean> {
    const path = `/btcpay/api/v1/stores/sandbox/webhooks/${id}/deliveries`;
    const response = await fetch(this.sandbox + path, { headers: KEY });
    const newestFirst = (await response.json()) as readonly { readonly httpCode: number | null }[];
    return newestFirst[0]?.httpCode === 200 && newestFirst.every(({ httpCode }) => httpCode !== null);
  }

  /** Configures the webhook URL of the sandbox's phoenixd. */
  async setPhoenixdWebhook(webhook: string): Promise<void> {
    await this.send('/phoenixd/conf', { webhook, webhook_secret: 'sandbox' }, 'PUT');
  }

  private async send<T>(path: string, body: object, method = 'POST'): Promise<T> {
    const response = await fetch(this.sandbox + path, { method, body: JSON.stringify(body), headers: KEY });
    const text = await response.text();
    if (!response.ok) throw new Error(`the sandbox rejected ${path}: ${text}`);
    return JSON.parse(text) as T;
  }
}
