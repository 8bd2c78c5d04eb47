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
const PART_PER_PAYER = 1 / 2;
const PART_PER_NON_PAYER = 1 / 8;
/** Of all who have not paid yet. */
const ALL_NON_PAYERS: MemoryShareholder = { name: 'strangers', part: 1 / 4 };

/** Accounts that are known to have been credited, in each process. */
const MAX_CACHED_ACCOUNTS = 100_000;

/** Whether an account has ever been credited. */
export type IsFunded = (accountId: string) => Promise<boolean>;
/** The one of a process, for all that asks. */
export const IS_FUNDED = Symbol('whether an account was ever credited');

/** Accounts are free. One that has been credited stays so, and is not read again. */
export function createFundedCheck({ accounts }: Streams): IsFunded {
  const fundedAccounts = new LRUCache<string, true>({ maxSize: MAX_CACHED_ACCOUNTS, sizeCalculation: () => 1 });
  return async (accountId) => {
    if (fundedAccounts.has(accountId)) return true;
    const isFunded = (await accounts.read(accountId)).credits.size > 0;
    if (isFunded) fundedAccounts.set(accountId, true);
    return isFunded;
  };
}

/**
 * Who shares what a request takes: its payer. Who has not paid yet shares a part of it with all others of his kind, whether he
 * has an account, which costs nothing, or none.
 * @param isFunded whether an account has ever been credited
 */
export async function resolveMemoryShareholders(
  { caller, anonymousCaller, ip }: FastifyRequest,
  isFunded: IsFunded,
): Promise<readonly MemoryShareholder[]> {
  if (anonymousCaller && 'proof' in anonymousCaller)
    return [{ name: anonymousCaller.proof.challengeId, part: PART_PER_PAYER }];
  if (!caller) return [{ name: toNetwork(ip), part: PART_PER_NON_PAYER }, ALL_NON_PAYERS];
  const name = caller.accountId;
  if (await isFunded(name)) return [{ name, part: PART_PER_PAYER }];
  return [{ name, part: PART_PER_NON_PAYER }, ALL_NON_PAYERS];
}

export class MemoryBudget {
  usedBytes = 0;
  private readonly byShareholder = new Map<string, number>();

  /** @param errorMessage what is said where there is no room */
  constructor(
    private readonly maxBytes: number,
    private readonly errorMessage: string,
  ) {}

  /** @throws OverloadedError */
  assertCapacity(shareholders: readonly MemoryShareholder[], amount = 1): void {
    const isFull = ({ name, part }: MemoryShareholder) =>
      (this.byShareholder.get(name) ?? 0) + amount > this.maxBytes * part;
    if (this.usedBytes + amount > this.maxBytes || shareholders.some(isFull))
      throw new OverloadedError(this.errorMessage);
  }

  add(shareholders: readonly MemoryShareholder[], amount: number): void {
    this.usedBytes += amount;
    for (const { name } of shareholders) {
      const ownAmount = (this.byShareholder.get(name) ?? 0) + amount;
      if (ownAmount === 0) this.byShareholder.delete(name);
      else this.byShareholder.set(name, ownAmount);
    }
  }
}

/** What one request has of it. */
export class MemoryShare {
  private amount = 0;

  constructor(
    private readonly budget: MemoryBudget,
    private readonly shareholders: readonly MemoryShareholder[],
  ) {}

  /** @throws OverloadedError */
  reserve(amount: number): void {
    this.budget.assertCapacity(this.shareholders, amount);
    this.budget.add(this.shareholders, amount);
    this.amount += amount;
  }

  freeAll(): void {
    this.budget.add(this.shareholders, -this.amount);
    this.amount = 0;
  }
}
