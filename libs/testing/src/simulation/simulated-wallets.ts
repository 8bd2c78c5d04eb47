/** The wallets of customers, which pay the invoices of automatic top-ups, as a process reaches them through relays. */
import { type WalletConnection, type WalletResponse, Wallets, WalletUnreachableError } from '#application';
import type { PaymentNetwork } from './simulated-payments.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** How often wallets fail, from 0 to 1. */
export interface WalletFaults {
  readonly unreachable: number;
  /** The request is sent, but the relay does not confirm that. */
  readonly unconfirmedRequest: number;
  readonly lostResponse: number;
  /** The wallet does not pay, and says so. */
  readonly rejected: number;
  /** Seconds pass until the wallet pays. */
  readonly slow: number;
}

export const NO_WALLET_FAULTS: WalletFaults = {
  unreachable: 0,
  unconfirmedRequest: 0,
  lostResponse: 0,
  rejected: 0,
  slow: 0,
};

const RELAY_MS = { min: 5, max: 300 };
const MAX_SLOW_MS = 90_000;
/** Codes of NIP-47. */
const REJECTIONS = ['INTERNAL', 'OTHER', 'INSUFFICIENT_BALANCE', 'QUOTA_EXCEEDED', 'RATE_LIMITED'] as const;
/** After these the wallet may still pay. */
const UNCERTAIN: ReadonlySet<string> = new Set(['INTERNAL', 'OTHER']);

export class SimulatedWallets extends Wallets {
  private calls = 0;

  constructor(
    private readonly network: PaymentNetwork,
    private readonly process: SimulatedProcess,
    private readonly getFaults: () => WalletFaults,
  ) {
    super();
  }

  /** @param name the public key of the wallet */
  async connect(name: string): Promise<WalletConnection> {
    return { pubkey: name, relays: [], encryption: 'nip44_v2', secret: name };
  }

  async pay(wallet: WalletConnection, invoice: string, onResponse: (response: WalletResponse) => void): Promise<void> {
    const { time, chance } = this.network.options;
    const faults = this.getFaults();
    const label = `${this.process.name} ${wallet.pubkey} ${this.calls++}`;
    const delay = (what: string, max = RELAY_MS.max) => chance.chooseSkewed(RELAY_MS.min, max, `${label} ${what}`);
    if (chance.isTrue(faults.unreachable, `${label} is unreachable`)) {
      await this.process.runtime.sleep(delay('time-out'));
      throw new WalletUnreachableError('No relay of the wallet can be reached');
    }
    const isSlow = chance.isTrue(faults.slow, `${label} is slow`);
    const arrivesAfterMs = delay('request', isSlow ? MAX_SLOW_MS : RELAY_MS.max);
    const response = time.wait(arrivesAfterMs).then(() => this.request(invoice, `${label} rejects`, faults.rejected));
    if (!chance.isTrue(faults.lostResponse, `${label} does not respond`))
      void this.process.receive(response, delay('response')).then(onResponse);
    await this.process.runtime.sleep(delay('confirmation'));
    if (chance.isTrue(faults.unconfirmedRequest, `${label} is not confirmed`))
      throw new Error('the relay did not confirm the request');
  }

  async close(): Promise<void> {}

  private request(invoice: string, label: string, rejected: number): WalletResponse {
    const { time, chance } = this.network.options;
    if (chance.isTrue(rejected, label)) {
      const code = chance.pick(REJECTIONS, `${label} with`);
      const pays = UNCERTAIN.has(code) && chance.isTrue(0.5, `${label} and pays`);
      if (pays) time.startTimer(chance.between(0, MAX_SLOW_MS, `${label} until`), () => this.network.tryToPay(invoice));
      return { code };
    }
    return { code: this.network.tryToPay(invoice) ? 'PAID' : 'PAYMENT_FAILED' };
  }
}
