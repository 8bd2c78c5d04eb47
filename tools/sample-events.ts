/** Events of active accounts, for benchmarks and proofs that need many events quickly. */
import { randomUUID } from 'node:crypto';
import { type Endpoint, readCatalogue, type TokenPricedModel } from '#catalogue';
import { type Charge, type DomainEvent, toCharge, toChargeItem, UNRESTRICTED_ACCESS, type Usage } from '#domain';
import { type EventAppender, parseUsd } from '#kernel';

/** The amount held for each request. */
export const HOLD_AMOUNT = parseUsd('0.0001');
export const HOLD_MS = 600_000;
const CREDIT = parseUsd('1000').toString();
/** The number of pairs of a hold and its settlement that are appended together. */
const PAIRS_PER_APPEND = 20;
const APPENDS_AT_ONCE = 64;

export const query = {
  model: 'openai/gpt-5-mini',
  type: 'chat_completion',
  source: 'api',
  online: false,
  free: false,
} as const;

/** A charge that an audit accepts: its price follows from its usage and tariff. */
export const charge = createSampleCharge({ input: 100, output: 30, request: 1 });

function createSampleCharge(usage: Usage): Charge {
  const catalogue = readCatalogue();
  const { tariff } = (catalogue.findModel(query.model) as TokenPricedModel).endpoints[0] as Endpoint;
  const { provider, creditor } = tariff;
  const vendorId = 'chatcmpl-0123456789abcdef0123456789abcdef';
  return toCharge([toChargeItem(tariff, { usage, estimated: false, vendorId })], {
    priceList: catalogue.priceList.version,
    attempts: [{ provider, creditor, model: query.model, outcome: 'ok', milliseconds: 345 }],
  });
}

export interface SampleAccount {
  readonly id: string;
  readonly keyId: string;
}

export function createOpeningEvents({ id, keyId }: SampleAccount): readonly DomainEvent[] {
  const at = new Date().toISOString();
  const key = { keyId, name: 'Default', hash: id, secret: { key: '', box: '' }, ...UNRESTRICTED_ACCESS };
  return [
    { type: 'AccountOpened', data: { at } },
    { type: 'KeyCreated', data: { ...key, limit: null, resetPeriod: null, expireAt: null, at } },
    { type: 'CreditAdded', data: { creditId: id, method: 'btc-lightning', amount: CREDIT, bonus: '0', at } },
  ];
}

/** A hold and its settlement. */
export function createHoldPair({ keyId }: SampleAccount): readonly [DomainEvent, DomainEvent] {
  const at = new Date().toISOString();
  const holdFields = { holdId: randomUUID(), keyId, query, at };
  const expiresAt = new Date(Date.now() + HOLD_MS).toISOString();
  return [
    { type: 'FundsHeld', data: { ...holdFields, amount: HOLD_AMOUNT.toString(), expiresAt } },
    {
      type: 'HoldSettled',
      data: { ...holdFields, held: HOLD_AMOUNT.toString(), heldAt: at, charged: charge.price, charge },
    },
  ];
}

interface Account extends SampleAccount {
  revision: number;
}

/** Opens accounts, then appends holds and settlements to them in turn: at least `eventCount` events in all. */
export async function useManyAccounts(store: EventAppender, accounts: number, eventCount: number): Promise<void> {
  const all = Array.from({ length: accounts }, () => ({ id: randomUUID(), keyId: randomUUID(), revision: -1 }));
  let remaining = eventCount;
  let next = 0;
  const append = async (account: Account, events: readonly DomainEvent[]) => {
    const recorded = events.map((event) => ({ ...event, id: randomUUID(), metadata: {} }));
    const head = await store.append(`account-${account.id}`, account.revision, recorded);
    if (head === 'stale') throw new Error('another process writes to this store');
    account.revision = head.revision;
    remaining -= events.length;
  };
  await Promise.all(all.map((account) => append(account, createOpeningEvents(account))));
  const worker = async () => {
    while (remaining > 0) {
      const account = all[next++ % all.length] as Account;
      await append(account, Array.from({ length: PAIRS_PER_APPEND }, () => createHoldPair(account)).flat());
    }
  };
  await Promise.all(Array.from({ length: APPENDS_AT_ONCE }, worker));
}
