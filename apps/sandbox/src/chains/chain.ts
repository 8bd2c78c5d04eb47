/** A simulated chain of any coin. Transactions wait, are mined, are replaced, or are reversed by a reorganisation. */
import { randomBytes } from 'node:crypto';
import type { ReportMode } from '../report.ts';
import { getNetwork, type Network } from './network.ts';

/** Height of the first mined block, as if earlier blocks existed. */
const FIRST_HEIGHT = 100;

export interface Output {
  readonly address: string;
  /** In the coin's smallest unit on its chain. */
  readonly units: bigint;
}

export interface Transaction {
  /** 64 hexadecimal digits. */
  readonly id: string;
  readonly outputs: readonly Output[];
  /** When the transaction was first seen, in milliseconds since 1970. */
  readonly seenAt: number;
  /** Height of the block with the transaction; undefined while the transaction waits, or after it was dropped. */
  readonly height: number | undefined;
  /** The transaction was replaced while it waited, or a reorganisation put another one in its place. */
  readonly isDropped: boolean;
  /** The fee is so low that the transaction is not mined. */
  readonly lowFee: boolean;
  /** Monero: block before which the outputs cannot be spent. The payer chooses it; 0 means none. */
  readonly unlockHeight: number;
  /** How backends report the transaction. */
  readonly report: ReportMode;
}

/** The properties of a new transaction, chosen by the wallet. */
export interface TransactionParams {
  readonly outputs: readonly Output[];
  /** Milliseconds since 1970. */
  readonly seenAt: number;
  readonly lowFee?: boolean;
  readonly unlockHeight?: number;
  readonly report?: ReportMode;
}

type Listener = (transaction: Transaction) => void;

export class Chain {
  readonly network: Network;
  private readonly transactions = new Map<string, Transaction>();
  private readonly byAddress = new Map<string, string[]>();
  private readonly pendingIds = new Set<string>();
  private readonly listeners = new Set<Listener>();
  private tip = FIRST_HEIGHT - 1;

  constructor(network: Network) {
    this.network = network;
  }

  get height(): number {
    return this.tip;
  }

  /** Creates an address of a receiving wallet. Only such addresses can be paid. */
  createAddress(): string {
    const address = this.network.createAddress();
    this.byAddress.set(address, []);
    return address;
  }

  hasAddress(address: string): boolean {
    return this.byAddress.has(address);
  }

  find(id: string): Transaction | undefined {
    return this.transactions.get(id);
  }

  /** Returns all transactions to an address in the order of sending, including dropped ones. */
  listTransactionsTo(address: string): readonly Transaction[] {
    return (this.byAddress.get(address) ?? []).flatMap((id) => this.transactions.get(id) ?? []);
  }

  /** Returns 0 for a transaction that waits or was dropped. */
  countConfirmations({ height }: Transaction): number {
    return height === undefined ? 0 : this.tip - height + 1;
  }

  send({ outputs, seenAt, lowFee = false, unlockHeight = 0, report = 'once' }: TransactionParams): Transaction {
    const id = randomBytes(32).toString('hex');
    for (const address of new Set(outputs.map((output) => output.address))) {
      const paid = this.byAddress.get(address);
      if (!paid) throw new Error(`${address} is not an address of this chain`);
      paid.push(id);
    }
    this.pendingIds.add(id);
    return this.set({ id, outputs, seenAt, height: undefined, isDropped: false, lowFee, unlockHeight, report });
  }

  /**
   * Drops a transaction, as if another one had replaced it while it waited (BIP 125) or in a reorganisation.
   * @throws Error if the transaction is unknown or was dropped before
   */
  drop({ id }: Transaction): Transaction {
    const transaction = this.transactions.get(id);
    if (!transaction || transaction.isDropped) throw new Error('the transaction is unknown or was dropped before');
    this.pendingIds.delete(id);
    return this.set({ ...transaction, height: undefined, isDropped: true });
  }

  /** Mines blocks. The first one contains all waiting transactions except those with a low fee. */
  mine(blocks: number): void {
    for (let block = 0; block < blocks; block++) {
      this.tip++;
      for (const id of this.pendingIds) {
        const transaction = this.transactions.get(id);
        if (!transaction || transaction.lowFee) continue;
        this.pendingIds.delete(id);
        this.transactions.set(id, { ...transaction, height: this.tip });
      }
    }
    for (const transaction of this.transactions.values())
      if (transaction.height !== undefined) this.notify(transaction);
  }

  /** Calls the listener when a transaction is sent or dropped, or gains confirmations. */
  subscribe(listener: Listener): void {
    this.listeners.add(listener);
  }

  private set(transaction: Transaction): Transaction {
    this.transactions.set(transaction.id, transaction);
    this.notify(transaction);
    return transaction;
  }

  private notify(transaction: Transaction): void {
    for (const listener of this.listeners) listener(transaction);
  }
}

/** The chains of all coins. Each is created on first use. */
export class Chains {
  private readonly byCoin = new Map<string, Chain>();
  private readonly listeners: ((chain: Chain, transaction: Transaction) => void)[] = [];

  getChain(coin: string): Chain {
    const existing = this.byCoin.get(coin);
    if (existing) return existing;
    const chain = new Chain(getNetwork(coin));
    chain.subscribe((transaction) => {
      for (const listener of this.listeners) listener(chain, transaction);
    });
    this.byCoin.set(coin, chain);
    return chain;
  }

  subscribe(listener: (chain: Chain, transaction: Transaction) => void): void {
    this.listeners.push(listener);
  }
}
