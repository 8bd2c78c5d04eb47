/** A simulated chain of any coin: transactions wait, are mined, are replaced, and are undone. */
import { randomBytes } from 'node:crypto';
import type { ReportMode } from '../report.ts';
import { getNetwork, type Network } from './network.ts';

/** The first block that a transaction can be in, so that heights look like heights. */
const FIRST_HEIGHT = 100;

export interface Output {
  readonly address: string;
  /** Of the coin's smallest unit on its chain. */
  readonly units: bigint;
}

export interface Transaction {
  /** 64 hexadecimal digits. */
  readonly id: string;
  readonly outputs: readonly Output[];
  /** When it was first seen. Milliseconds since 1970. */
  readonly seenAt: number;
  /** The block that it is in; undefined while it waits, or when it is gone. */
  readonly height: number | undefined;
  /** It was replaced while it waited, or undone by a reorganisation that put something else in its place. */
  readonly isDropped: boolean;
  /** It offers so little that nobody mines it. */
  readonly lowFee: boolean;
  /** Monero: its outputs cannot be spent before this block. The payer chooses it; 0 is none. */
  readonly unlockHeight: number;
  /** How those who watch for it report it. */
  readonly report: ReportMode;
}

/** What a wallet says about a transaction that it sends. */
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

  /** A new address of a wallet that takes payments. Only such addresses can be paid to. */
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

  /** All transactions that paid to an address, also those that are gone, oldest first. */
  listTransactionsTo(address: string): readonly Transaction[] {
    return (this.byAddress.get(address) ?? []).flatMap((id) => this.transactions.get(id) ?? []);
  }

  /** In how many blocks it is confirmed; 0 while it waits. */
  countConfirmations({ height }: Transaction): number {
    return height === undefined ? 0 : this.tip - height + 1;
  }

  send({ outputs, seenAt, lowFee = false, unlockHeight = 0, report = 'once' }: TransactionParams): Transaction {
    const id = randomBytes(32).toString('hex');
    for (const address of new Set(outputs.map((output) => output.address))) {
      const paid = this.byAddress.get(address);
      if (!paid) throw new Error(`${address} is nobody's address`);
      paid.push(id);
    }
    this.pendingIds.add(id);
    return this.set({ id, outputs, seenAt, height: undefined, isDropped: false, lowFee, unlockHeight, report });
  }

  /** Another transaction takes the place of one that waits (BIP 125), or of one that a reorganisation undid. */
  drop({ id }: Transaction): Transaction {
    const transaction = this.transactions.get(id);
    if (!transaction || transaction.isDropped) throw new Error('only a transaction that is there can go');
    this.pendingIds.delete(id);
    return this.set({ ...transaction, height: undefined, isDropped: true });
  }

  /** Everything that pays for it is in the first of these blocks. */
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

  /** Calls when a transaction comes, goes, or is deeper than it was. */
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

/** The chains of all coins, each begun when it is first named. */
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
