/** Scenarios of payments to a top-up by a customer's wallet, in the sandbox. */
import type { CoinTerms, Destination, DomainEvent } from '#domain';
import { START_POSITION, type StoredEvent } from '#kernel';
import { waitUntil } from '../wait-until.ts';
import { type PayOptions, SandboxWallet } from './sandbox-wallet.ts';
import type { TestAccount, TestWorld } from './world.ts';

/**
 * Options of a payment that must stay unconfirmed, because its scenario replaces it later or checks that it waits. With
 * this fee its transaction is not mined, not even by another scenario that runs at the same time.
 */
const REPLACEABLE = { lowFee: true };
const SECONDS_AFTER_EXPIRY = 3_600;

/** A top-up that waits to be paid. */
export interface RequestedTopup {
  readonly topupId: string;
  readonly account: TestAccount;
  readonly coin: CoinTerms;
  readonly destination: Destination;
  readonly units: bigint;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** The actions of a scenario. */
interface Stage {
  readonly topup: RequestedTopup;
  pay(units: bigint, options?: PayOptions): Promise<string>;
  /** Makes waiting transactions final, except those with a low fee. */
  mine(): Promise<void>;
  /** Replaces a transaction by another that does not pay the top-up, as in a double spend. */
  undo(txid: string): Promise<void>;
  waitForEvent(eventType: string): Promise<void>;
}

/** @returns the units that the wallet has finally paid */
type PaymentScenario = (stage: Stage) => Promise<bigint>;

const payInFull: PaymentScenario = async ({ topup: { units }, pay, mine }) => {
  await pay(units);
  await mine();
  return units;
};

export const SCENARIOS = {
  exact: payInFull,
  async partial({ topup: { units }, pay, mine }) {
    await pay(units / 4n);
    await mine();
    return units / 4n;
  },
  async overpayment({ topup: { units }, pay, mine }) {
    await pay(units * 2n);
    await mine();
    return units * 2n;
  },
  async afterExpiry({ topup: { units, expiresAt }, pay, mine }) {
    await pay(units, { receivedAt: expiresAt + SECONDS_AFTER_EXPIRY });
    await mine();
    return units;
  },
  async twice({ topup: { units }, pay, mine }) {
    await pay(units / 4n);
    await pay(units);
    await mine();
    return units + units / 4n;
  },
  async lowFee({ topup: { units }, pay, mine, waitForEvent }) {
    await pay(units, REPLACEABLE);
    await waitForEvent('PaymentSeen');
    await mine();
    return 0n;
  },
  async replacement({ topup: { units }, pay, mine, waitForEvent }) {
    const first = await pay(units, REPLACEABLE);
    await waitForEvent('PaymentSeen');
    await pay(units / 4n, { replaces: first });
    await mine();
    await waitForEvent('PaymentLost');
    return units / 4n;
  },
  async doubleSpend({ topup: { units }, pay, undo, waitForEvent }) {
    const first = await pay(units, REPLACEABLE);
    await waitForEvent('PaymentSeen');
    await undo(first);
    await waitForEvent('PaymentLost');
    return 0n;
  },
  /** Pays only a part, because payment backends continue to report on an invoice that is not fully paid. */
  async reversal({ topup: { units }, pay, mine, undo, waitForEvent }) {
    const first = await pay(units / 4n);
    await mine();
    await waitForEvent('TopupCredited');
    await undo(first);
    await waitForEvent('PaymentReversed');
    return 0n;
  },
} satisfies Readonly<Record<string, PaymentScenario>>;

export type ScenarioName = keyof typeof SCENARIOS;

/** The result of a scenario. */
export interface ScenarioOutcome {
  readonly topup: RequestedTopup;
  /** Amount that the wallet has finally paid, in the coin's smallest unit. */
  readonly paid: bigint;
  /** The same amount according to the events. */
  readonly recorded: bigint;
}

const EVENT_TIMEOUT_MS = 300_000;

/** Runs scenarios in a world. Many can run at the same time. */
export class ScenarioRunner {
  private readonly wallet: SandboxWallet;
  private readonly events = new Map<string, StoredEvent<DomainEvent>[]>();
  private readonly waiting = new Set<() => void>();
  private readonly closing = new AbortController();
  private readonly following: Promise<void>;

  constructor(private readonly world: TestWorld) {
    this.wallet = new SandboxWallet(world.sandbox);
    this.following = this.follow();
  }

  /** @param api URL of the gateway to call */
  async requestTopup(coin: CoinTerms, method: string, usd: number, api: string): Promise<RequestedTopup> {
    const payload = { amount: usd, currency: 'USD' };
    const request = async () => {
      const account = await this.world.createAccount();
      return { account, response: await this.world.post(`/topup/create/${method}`, payload, account, api) };
    };
    let requested = await request();
    // Backends have a time limit, which many top-ups at once exceed on a busy host.
    await waitUntil(async () => {
      if (requested.response.status === 503) requested = await request();
      return requested.response.status !== 503;
    });
    const { account } = requested;
    const { status, text, body } = requested.response;
    if (status !== 201) throw new Error(`no invoice: ${status} ${text}`);
    const { invoice_id: topupId, expires_at: expiresAt } = body;
    await this.waitUntil(topupId, ({ length }) => length > 0);
    const [issued] = this.getEvents(topupId);
    if (issued?.type !== 'InvoiceIssued') throw new Error('the first event of a top-up is not InvoiceIssued');
    await this.world.get(`/topup/status/${topupId}`); // waits until the read model has the reference that hints name
    const { destination, units } = issued.data;
    return { topupId, account, coin, destination, units: BigInt(units), expiresAt };
  }

  /**
   * Runs a scenario to its end.
   * @param report how the payment backend reports the payments
   */
  async run(
    name: ScenarioName,
    topup: RequestedTopup,
    report: NonNullable<PayOptions['report']>,
  ): Promise<ScenarioOutcome> {
    const { coin, destination, topupId } = topup;
    const paid = await SCENARIOS[name]({
      topup,
      pay: (units, options) => this.wallet.pay(destination, units, coin, { report, ...options }),
      mine: () => (destination.kind === 'bolt11' ? Promise.resolve() : this.wallet.mine(coin)),
      undo: (txid) => this.wallet.undo(coin, txid),
      waitForEvent: (eventType) => this.waitUntil(topupId, (events) => events.some(({ type }) => type === eventType)),
    });
    await this.waitUntil(topupId, (events) => sumRecorded(events) === paid);
    return { topup, paid, recorded: sumRecorded(this.getEvents(topupId)) };
  }

  /** Returns the events of a top-up that were received so far. */
  getEvents(topupId: string): readonly StoredEvent<DomainEvent>[] {
    return this.events.get(`topup-${topupId}`) ?? [];
  }

  async close(): Promise<void> {
    this.closing.abort();
    await this.following;
  }

  private async follow(): Promise<void> {
    for await (const { events } of this.world.foundation.store.subscribe(START_POSITION, this.closing.signal)) {
      for (const event of events as readonly StoredEvent<DomainEvent>[]) {
        const streamEvents = this.events.get(event.stream);
        if (streamEvents) streamEvents.push(event);
        else this.events.set(event.stream, [event]);
      }
      for (const check of this.waiting) check();
    }
  }

  private async waitUntil(
    topupId: string,
    isMet: (events: readonly StoredEvent<DomainEvent>[]) => boolean,
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = () => {
      if (isMet(this.getEvents(topupId))) resolve();
    };
    const getEventTypes = () => this.getEvents(topupId).map(({ type }) => type);
    const timer = setTimeout(
      () => reject(new Error(`the expected events did not occur, only ${getEventTypes()}`)),
      EVENT_TIMEOUT_MS,
    );
    this.waiting.add(check);
    check();
    await promise.finally(() => {
      this.waiting.delete(check);
      clearTimeout(timer);
    });
  }
}

function sumRecorded(events: readonly DomainEvent[]): bigint {
  return events.reduce((units, { type, data }) => {
    return type === 'PaymentReceived' || type === 'PaymentReversed' ? units + BigInt(data.units) : units;
  }, 0n);
}
