/** Wallets in the sandbox, which pay what back ends ask for, and the miners of its chains. */
import type { CoinTerms, Destination } from '#domain';
import { money } from '#kernel';

/** More than any method waits for. */
const BLOCKS_TO_FINAL = 10;

const KEY = { authorization: 'token sandbox' };

export interface PayOptions {
  /** Unix seconds. */
  readonly receivedAt?: number;
  /** It waits for ever, until it is replaced. */
  readonly lowFee?: boolean;
  /** The transaction that it takes the place of. */
  readonly replaces?: string;
  readonly report?: 'once' | 'twice' | 'reordered' | 'never' | 'forged';
}

export class SandboxWallet {
  constructor(private readonly sandbox: string) {}

  /** @returns what the network knows it by: a transaction or a payment hash @throws Error when it cannot be paid so */
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

  /** Everything that waits is as deep as it need be, unless its fee is too low. Lightning needs none of it. */
  async mine(coin: CoinTerms, blocks = BLOCKS_TO_FINAL): Promise<void> {
    await this.send(`/chains/${coin.code}/mine`, { blocks });
  }

  /** A transaction goes, and does not come back: another one that pays somebody else has its place. */
  async undo(coin: CoinTerms, txid: string): Promise<void> {
    await this.send(`/chains/${coin.code}/undo`, { txid });
  }

  /** Tells the sandbox's BTCPay Server where its web hooks go, as an operator does. */
  async addWebhook(url: string): Promise<void> {
    await this.send('/btcpay/api/v1/stores/sandbox/webhooks', { url, secret: 'sandbox' });
  }

  /** Has what its phoenixd reports sent to an address. */
  async setPhoenixdWebhook(webhook: string): Promise<void> {
    await this.send('/phoenixd/conf', { webhook, webhook_secret: 'sandbox' }, 'PUT');
  }

  private async send<T>(path: string, body: object, method = 'POST'): Promise<T> {
    const response = await fetch(this.sandbox + path, { method, body: JSON.stringify(body), headers: KEY });
    const text = await response.text();
    if (!response.ok) throw new Error(`the sandbox refused ${path}: ${text}`);
    return JSON.parse(text) as T;
  }
}
