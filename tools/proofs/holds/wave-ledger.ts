/** Compares what the ledger say that the calls of an account cost with what their provider bills. */
import type { ChargeItem, DomainEvent } from '#domain';
import { type EventReader, money, parseUsd, START_POSITION, type StoredEvent } from '#kernel';
import { repeatFetch } from './repeat-fetch.ts';

const PICO_USD = 1e12;
/** Searches by tool are billed by this service, without the name of a wave. */
const SEARCH = 'exa/search';

/** The amounts in USD. */
export interface WaveLedger {
  readonly billedUsd: number;
  /** The cost of all calls, including those that the operator absorbs. */
  readonly bookedUsd: number;
  /** What is billed and booked for the calls whose usage the provider reported. */
  readonly reported: { readonly billedUsd: number; readonly bookedUsd: number };
  /** What the payer was charged, by request. */
  readonly chargedUsd: ReadonlyMap<string, number>;
}

interface BillLine {
  readonly id: string;
  readonly model: string;
  readonly usd: string;
  readonly at: string;
  readonly directive?: string;
}

/** The waves of one payer, and when they ran. */
export interface LedgerWave {
  readonly name: string;
  readonly startedAt: Date;
  readonly endedAt: Date;
  readonly requestIds: readonly string[];
  /** Whether it is the only wave of this time that searches. */
  readonly searches: boolean;
}

/** The events of all accounts, and the bill of all providers, at one moment. */
export class LedgerReader {
  private constructor(
    private readonly itemsByStream: ReadonlyMap<string, readonly ChargeItem[]>,
    private readonly streamByHold: ReadonlyMap<string, string>,
    private readonly chargedByHold: ReadonlyMap<string, number>,
    private readonly lines: readonly BillLine[],
  ) {}

  static async read(store: EventReader, sandbox: string): Promise<LedgerReader> {
    const items = new Map<string, ChargeItem[]>();
    const streams = new Map<string, string>();
    const charged = new Map<string, number>();
    for await (const { events } of store.readAll(START_POSITION)) {
      for (const { type, data, stream } of events as readonly StoredEvent<DomainEvent>[]) {
        if (type === 'FundsHeld') streams.set(data.holdId, stream);
        if (type === 'HoldSettled') charged.set(data.holdId, toUsd(money.parseJsonAmount(data.charged)));
        if (type !== 'HoldSettled' && type !== 'ChargeAbsorbed') continue;
        const ofStream = items.get(stream) ?? [];
        ofStream.push(...data.charge.items);
        items.set(stream, ofStream);
      }
    }
    const lines = (await repeatFetch(async () => (await fetch(`${sandbox}/bill/lines`)).json())) as readonly BillLine[];
    return new LedgerReader(items, streams, charged, lines);
  }

  /** Returns what the account of a wave owes for its requests, and what they cost. */
  compare({ name, startedAt, endedAt, requestIds, searches }: LedgerWave): WaveLedger {
    const [from, to] = [startedAt.toISOString(), endedAt.toISOString()];
    const isSearch = ({ model, at }: BillLine) => searches && model === SEARCH && at >= from && at <= to;
    const lines = this.lines.filter((line) => line.directive === name || isSearch(line));
    const stream = requestIds.map((id) => this.streamByHold.get(id)).find((match) => match !== undefined) ?? '';
    const items = this.itemsByStream.get(stream) ?? [];
    const reportedItems = items.filter(({ vendorId, estimated }) => vendorId !== undefined && !estimated);
    const reportedIds = new Set(reportedItems.map(({ vendorId }) => vendorId));
    return {
      billedUsd: sumBilled(lines),
      bookedUsd: sumBooked(items),
      reported: {
        billedUsd: sumBilled(lines.filter((line) => reportedIds.has(line.id) || isSearch(line))),
        bookedUsd: sumBooked(reportedItems),
      },
      chargedUsd: new Map(requestIds.map((id) => [id, this.chargedByHold.get(id) ?? 0])),
    };
  }
}

function sumBilled(lines: readonly BillLine[]): number {
  return toUsd(lines.reduce((total, { usd }) => total + parseUsd(usd), 0n));
}

function sumBooked(items: readonly ChargeItem[]): number {
  return toUsd(items.reduce((total, { cost }) => total + money.parseJsonAmount(cost), 0n));
}

function toUsd(pico: bigint): number {
  return Number(pico) / PICO_USD;
}
