/** What can happen between a customer's wallet and a top-up, played in the sandbox. */
import type { CoinTerms, Destination, DomainEvent } from '#domain';
import { START_POSITION, type StoredEvent } from '#kernel';
import { type HowToPay, SandboxWallet } from './sandbox-wallet.ts';
import type { TestAccount, TestWorld } from './world.ts';

/** The last blocks of a transaction that is replaced never come, so it is never mined meanwhile by another story. */
const REPLACEABLE = { lowFee: true };
const LATE_SECONDS = 3_600;

/** A top-up that waits to be paid. */
export interface AskedFor {
  readonly topupId: string;
  readonly account: TestAccount;
  readonly coin: CoinTerms;
  readonly destination: Destination;
  readonly units: bigint;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** What a story pays with, and what it waits for. */
interface Stage {
  readonly asked: AskedFor;
  pay(units: bigint, how?: HowToPay): Promise<string>;
  /** Everything that waits and is not to wait becomes final. */
  mine(): Promise<void>;
  /** Undoes or replaces a transaction by one that pays somebody else. */
  undo(txid: string): Promise<void>;
  until(fact: string): Promise<void>;
}

/** @returns the units that came to stay, as the wallet has paid them */
type Story = (stage: Stage) => Promise<bigint>;

const full: Story = async ({ asked: { units }, pay, mine }) => {
  await pay(units);
  await mine();
  return units;
};

export const STORIES = {
  exact: full,
  async partial({ asked: { units }, pay, mine }) {
    await pay(units / 4n);
    await mine();
    return units / 4n;
  },
  async over({ asked: { units }, pay, mine }) {
    await pay(units * 2n);
    await mine();
    return units * 2n;
  },
  async late({ asked: { units, expiresAt }, pay, mine }) {
    await pay(units, { receivedAt: expiresAt + LATE_SECONDS });
    await mine();
    return units;
  },
  async twice({ asked: { units }, pay, mine }) {
    await pay(units / 4n);
    await pay(units);
    await mine();
    return units + units / 4n;
  },
  async waiting({ asked: { units }, pay, mine, until }) {
    await pay(units, REPLACEABLE);
    await until('PaymentSeen');
    await mine();
    return 0n;
  },
  async replaced({ asked: { units }, pay, mine, until }) {
    const first = await pay(units, REPLACEABLE);
    await until('PaymentSeen');
    await pay(units / 4n, { replaces: first });
    await mine();
    await until('PaymentLost');
    return units / 4n;
  },
  async elsewhere({ asked: { units }, pay, undo, until }) {
    const first = await pay(units, REPLACEABLE);
    await until('PaymentSeen');
    await undo(first);
    await until('PaymentLost');
    return 0n;
  },
  /** Part of what was asked for, because that is what a back end goes on watching. */
  async undone({ asked: { units }, pay, mine, undo, until }) {
    const first = await pay(units / 4n);
    await mine();
    await until('TopupCredited');
    await undo(first);
    await until('PaymentReversed');
    return 0n;
  },
} satisfies Readonly<Record<string, Story>>;

export type StoryName = keyof typeof STORIES;

/** What a story has come to, in the books. */
export interface ScenarioOutcome {
  readonly topup: AskedFor;
  /** What the wallet has paid to stay, and what was recorded to stay, of the coin's smallest unit. */
  readonly paid: bigint;
  readonly recorded: bigint;
}

const TOLD_WITHIN_MS = 30_000;

/** Tells stories in a world, many at the same time. */
export class StoryTeller {
  private readonly wallet: SandboxWallet;
  private readonly facts = new Map<string, StoredEvent<DomainEvent>[]>();
  private readonly waiting = new Set<() => void>();
  private readonly closing = new AbortController();
  private readonly following: Promise<void>;

  constructor(private readonly world: TestWorld) {
    this.wallet = new SandboxWallet(world.sandbox);
    this.following = this.follow();
  }

  /** @param api of the gateway that is asked */
  async ask(coin: CoinTerms, method: string, usd: number, api: string): Promise<AskedFor> {
    const account = await this.world.account();
    const wanted = { amount: usd, currency: 'USD' };
    const { status, text, body } = await this.world.post(`/topup/create/${method}`, wanted, account, api);
    if (status !== 201) throw new Error(`no invoice: ${status} ${text}`);
    const { invoice_id: topupId, expires_at: expiresAt } = body;
    await this.until(topupId, ({ length }) => length > 0);
    const [issued] = this.of(topupId);
    if (issued?.type !== 'InvoiceIssued') throw new Error('a top-up begins with its invoice');
    await this.world.get(`/topup/status/${topupId}`); // from here on it is known by its reference, so hints are heard
    const { destination, units } = issued.data;
    return { topupId, account, coin, destination, units: BigInt(units), expiresAt };
  }

  /**
   * Plays a story to its end.
   * @param report how what takes the payment reports it
   */
  async play(name: StoryName, asked: AskedFor, report: NonNullable<HowToPay['report']>): Promise<ScenarioOutcome> {
    const { coin, destination, topupId } = asked;
    const paid = await STORIES[name]({
      asked,
      pay: (units, how) => this.wallet.pay(destination, units, coin, { report, ...how }),
      mine: () => (destination.kind === 'bolt11' ? Promise.resolve() : this.wallet.mine(coin)),
      undo: (txid) => this.wallet.undo(coin, txid),
      until: (fact) => this.until(topupId, (facts) => facts.some(({ type }) => type === fact)),
    });
    await this.until(topupId, (facts) => recordedIn(facts) === paid);
    return { topup: asked, paid, recorded: recordedIn(this.of(topupId)) };
  }

  /** What has been stated of a top-up so far. */
  of(topupId: string): readonly StoredEvent<DomainEvent>[] {
    return this.facts.get(`topup-${topupId}`) ?? [];
  }

  async close(): Promise<void> {
    this.closing.abort();
    await this.following;
  }

  private async follow(): Promise<void> {
    for await (const { events } of this.world.foundation.store.subscribe(START_POSITION, this.closing.signal)) {
      for (const fact of events as readonly StoredEvent<DomainEvent>[]) {
        const known = this.facts.get(fact.stream);
        if (known) known.push(fact);
        else this.facts.set(fact.stream, [fact]);
      }
      for (const look of this.waiting) look();
    }
  }

  private async until(topupId: string, is: (facts: readonly StoredEvent<DomainEvent>[]) => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = () => {
      if (is(this.of(topupId))) resolve();
    };
    const facts = () => this.of(topupId).map(({ type }) => type);
    const timer = setTimeout(() => reject(new Error(`what was waited for did not happen: ${facts()}`)), TOLD_WITHIN_MS);
    this.waiting.add(look);
    look();
    await promise.finally(() => {
      this.waiting.delete(look);
      clearTimeout(timer);
    });
  }
}

function recordedIn(facts: readonly DomainEvent[]): bigint {
  return facts.reduce((units, { type, data }) => {
    return type === 'PaymentReceived' || type === 'PaymentReversed' ? units + BigInt(data.units) : units;
  }, 0n);
}
