/** Compares the charges in the event store with the requests that were sent, and with the bill of the providers. */
import type { DomainEvent } from '#domain';
import { createLog, openFoundation, readSettings } from '#foundation';
import { money, START_POSITION, type StoredEvent } from '#kernel';
import type { ProofCluster } from '../../cluster.ts';

const UNCHARGED_ENDS: ReadonlySet<string> = new Set(['HoldReleased', 'HoldExpired', 'ChargeReversed']);

export interface ChargeComparison {
  /** Number of settled holds with a charge. */
  readonly charges: number;
  /** Number of requests that were not charged exactly once. */
  readonly mischarged: number;
  /** Number of charges, and of costs that the operator absorbs, with an estimated usage. */
  readonly estimated: number;
  /** Number of holds that ended without a charge, or whose charge was reversed. */
  readonly uncharged: number;
  readonly bookedUsd: string;
  readonly billedUsd: string;
  readonly isBillBooked: boolean;
}

/** @param requestIds the ids of all requests that must be charged, and of no other ones */
export async function compareCharges(
  { environment, sandbox }: ProofCluster,
  requestIds: readonly string[],
): Promise<ChargeComparison> {
  const foundation = await openFoundation(readSettings(environment), createLog('warn'));
  try {
    const chargesByHold = new Map<string, number>();
    let [estimated, uncharged, booked] = [0, 0, 0n];
    for await (const { events } of foundation.store.readAll(START_POSITION)) {
      for (const { type, data } of events as readonly StoredEvent<DomainEvent>[]) {
        if (UNCHARGED_ENDS.has(type)) uncharged++;
        if (type !== 'HoldSettled' && type !== 'ChargeAbsorbed') continue;
        if (type === 'HoldSettled') chargesByHold.set(data.holdId, (chargesByHold.get(data.holdId) ?? 0) + 1);
        const { items } = data.charge;
        if (items.some((item) => item.estimated)) estimated++;
        booked += items.reduce((total, { cost }) => total + money.parseJsonAmount(cost), 0n);
      }
    }
    const { total_usd } = (await (await fetch(`${sandbox}/bill`)).json()) as { total_usd: string };
    const billed = money.parseUsd(total_usd);
    return {
      charges: chargesByHold.values().reduce((total, count) => total + count, 0),
      mischarged: requestIds.filter((id) => chargesByHold.get(id) !== 1).length,
      estimated,
      uncharged,
      bookedUsd: money.formatUsd(money.toPicoUsd(booked)),
      billedUsd: money.formatUsd(billed),
      isBillBooked: booked === billed,
    };
  } finally {
    await foundation.close();
  }
}
