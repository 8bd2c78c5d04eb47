/** Limits a resource that all requests of a process share, and the part of it that each shareholder may use. */
import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import type { Streams } from '#application';
import { isFunded } from '#domain';
import { limitEntries } from '#kernel';
import { OverloadedError } from '../errors/errors.ts';
import { toNetwork } from '../network/client-addresses.ts';

/** Callers that are counted together, with the fraction of the budget that their requests may use. */
export interface MemoryShareholder {
  readonly name: string;
  readonly part: number;
}

/** One payer cannot use the entire budget. */
const PART_PER_PAYER = 1 / 2;
const PART_PER_NON_PAYER = 1 / 8;
/** Shared by all callers who have not paid yet. */
const ALL_NON_PAYERS: MemoryShareholder = { name: 'strangers', part: 1 / 4 };

/** Maximum number of credited accounts that a process caches. */
const MAX_CACHED_ACCOUNTS = 100_000;

/** Whether an account has ever been credited. */
export type IsFunded = (accountId: string) => Promise<boolean>;
/** Injection token of the check that the process shares. */
export const IS_FUNDED = Symbol('whether an account was ever credited');

/**
 * Creates the check whether an account was ever credited. Only then does an account count as a payer, because creating
 * accounts is free. A credited account is cached: it stays credited.
 */
export function createFundedCheck({ accounts }: Streams): IsFunded {
  const fundedAccounts = new LRUCache<string, true>(limitEntries(MAX_CACHED_ACCOUNTS));
  return async (accountId) => {
    if (fundedAccounts.has(accountId)) return true;
    const isPayer = isFunded(await accounts.read(accountId));
    if (isPayer) fundedAccounts.set(accountId, true);
    return isPayer;
  };
}

/**
 * Returns the shareholders that a request counts towards. A payer is its own shareholder. A caller who has not
 * paid yet counts towards two: its account, or its network without an account, and one that all such callers share.
 * @param isFunded whether an account was ever credited
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

  /** @param errorMessage the message if the budget or the fraction of a shareholder is exhausted */
  constructor(
    private readonly maxBytes: number,
    private readonly errorMessage: string,
  ) {}

  /** @throws OverloadedError if the budget, or the fraction of a shareholder, has less than `amount` left */
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

/** What one request uses of a budget. */
export class MemoryShare {
  private amount = 0;

  constructor(
    private readonly budget: MemoryBudget,
    private readonly shareholders: readonly MemoryShareholder[],
  ) {}

  /** @throws OverloadedError if the budget, or the fraction of a shareholder, has less than `amount` left */
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
