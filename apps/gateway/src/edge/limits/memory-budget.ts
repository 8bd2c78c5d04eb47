/** What all requests of a process may take of something together, and what each of those who share it may. */
import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Streams } from '#application';
import { OverloadedError } from '../errors/errors.ts';
import { toNetwork } from '../network/client-addresses.ts';

/** One of those who share, and how much of all they may have. */
export interface MemoryShareholder {
  readonly name: string;
  readonly part: number;
}

/** So that others have something, too. */
const PART_OF_A_PAYER = 1 / 2;
const PART_OF_A_STRANGER = 1 / 8;
/** Of all who have not paid yet. */
const STRANGERS: MemoryShareholder = { name: 'strangers', part: 1 / 4 };

/** Accounts that are known to have been credited, in each process. */
const REMEMBERED_ACCOUNTS = 100_000;

/** Whether an account has ever been credited. */
export type IsFunded = (accountId: string) => Promise<boolean>;
/** The one of a process, for all that asks. */
export const IS_FUNDED = Symbol('whether an account was ever credited');

/** Accounts are free. One that has been credited stays so, and is not read again. */
export function createFundedCheck({ accounts }: Streams): IsFunded {
  const funded = new LRUCache<string, true>({ maxSize: REMEMBERED_ACCOUNTS, sizeCalculation: () => 1 });
  return async (accountId) => {
    if (funded.has(accountId)) return true;
    const isFunded = (await accounts.read(accountId)).credits.size > 0;
    if (isFunded) funded.set(accountId, true);
    return isFunded;
  };
}

/**
 * Who shares what a request takes: its payer. Who has not paid yet shares a part of it with all others of his kind, whether he
 * has an account, which costs nothing, or none.
 * @param isFunded whether an account has ever been credited
 */
export async function resolveMemoryShareholders(
  { caller, visitor, ip }: FastifyRequest,
  isFunded: IsFunded,
): Promise<readonly MemoryShareholder[]> {
  if (visitor && 'proof' in visitor) return [{ name: visitor.proof.challengeId, part: PART_OF_A_PAYER }];
  if (!caller) return [{ name: toNetwork(ip), part: PART_OF_A_STRANGER }, STRANGERS];
  const name = caller.accountId;
  if (await isFunded(name)) return [{ name, part: PART_OF_A_PAYER }];
  return [{ name, part: PART_OF_A_STRANGER }, STRANGERS];
}

export class MemoryBudget {
  taken = 0;
  private readonly bySharer = new Map<string, number>();

  /** @param refusal what is said where there is no room */
  constructor(
    private readonly max: number,
    private readonly refusal: string,
  ) {}

  /** @throws OverloadedError */
  assertRoom(sharers: readonly MemoryShareholder[], amount = 1): void {
    const isFull = ({ name, part }: MemoryShareholder) => (this.bySharer.get(name) ?? 0) + amount > this.max * part;
    if (this.taken + amount > this.max || sharers.some(isFull)) throw new OverloadedError(this.refusal);
  }

  add(sharers: readonly MemoryShareholder[], amount: number): void {
    this.taken += amount;
    for (const { name } of sharers) {
      const own = (this.bySharer.get(name) ?? 0) + amount;
      if (own === 0) this.bySharer.delete(name);
      else this.bySharer.set(name, own);
    }
  }
}

/** What one request has of it. */
export class MemoryShare {
  private amount = 0;

  constructor(
    private readonly budget: MemoryBudget,
    private readonly sharers: readonly MemoryShareholder[],
  ) {}

  /** @throws OverloadedError */
  take(amount: number): void {
    this.budget.assertRoom(this.sharers, amount);
    this.budget.add(this.sharers, amount);
    this.amount += amount;
  }

  giveBack(): void {
    this.budget.add(this.sharers, -this.amount);
    this.amount = 0;
  }
}
