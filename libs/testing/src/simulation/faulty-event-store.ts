import {
  type EventBatch,
  type EventStore,
  type NewEvent,
  NO_STREAM,
  type StoredEvent,
  StoreUnavailableError,
  type StreamHead,
} from '#kernel';
import type { Chance } from './chance.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { SimulatedTime } from './simulated-time.ts';

/** How often calls of the store fail, from 0 (never) to 1 (always). */
export interface StoreFaults {
  /** The events are stored, but the response is lost. */
  readonly lostResponse: number;
  /** The call fails before anything is stored. */
  readonly failedAppend: number;
  /** The events are stored long after the caller has given up. */
  readonly delayedAppend: number;
  /** The process is killed when the events are stored. A tenth as often as other faults with the same rate. */
  readonly killedAfterAppend: number;
  /** Request and response take up to seconds. */
  readonly slow: number;
  readonly failedRead: number;
  /** A page of a read ends early, so that others append between two pages. */
  readonly shortPage: number;
  /** A subscription receives events after a delay. */
  readonly lag: number;
  readonly endedSubscription: number;
}

export const NO_STORE_FAULTS: StoreFaults = {
  lostResponse: 0,
  failedAppend: 0,
  delayedAppend: 0,
  killedAfterAppend: 0,
  slow: 0,
  failedRead: 0,
  shortPage: 0,
  lag: 0,
  endedSubscription: 0,
};

/** A time in which the store responds to nobody. */
export interface Outage {
  readonly fromMs: number;
  readonly untilMs: number;
  /** Whether calls fail at once, or wait and are then done. */
  readonly mode: 'refusing' | 'frozen';
}

export interface FaultyStoreOptions {
  readonly time: SimulatedTime;
  readonly chance: Chance;
  /** Returns the faults that occur now. */
  getFaults(): StoreFaults;
  readonly outages: readonly Outage[];
  /** Kills the process of this store. */
  kill?(): void;
  /** Called with each fault that occurs. */
  onFault?(fault: string): void;
}

/** Longer than any caller waits for an append. */
const APPEND_DELAY_MS = 12_000;
const MAX_SLOW_MS = 3_000;
const MAX_LAG_MS = 5_000;
const REQUEST_MS = { min: 0.2, max: 5 };
const MAX_PAGE = 1_000;

/** The server of an event store, which notifies its readers of new events. */
export class StoreServer {
  private readonly listeners = new Set<() => void>();

  constructor(readonly store: EventStore) {}

  async append(...args: Parameters<EventStore['append']>): ReturnType<EventStore['append']> {
    const result = await this.store.append(...args);
    for (const listener of [...this.listeners]) listener();
    return result;
  }

  onAppend(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}

/**
 * The event store as one process sees it: over a network and from a server that fail. With all faults off it is the
 * store of the server, with short delays.
 */
export class FaultyEventStore implements EventStore {
  private readonly calls = new Map<string, number>();

  constructor(
    private readonly server: StoreServer,
    private readonly process: SimulatedProcess,
    private readonly options: FaultyStoreOptions,
  ) {}

  async append(stream: string, expected: number, events: readonly NewEvent[]): Promise<StreamHead | 'stale'> {
    const label = this.count(`append ${stream} ${expected} ${events[0]?.type}`);
    const { chance } = this.options;
    const faults = this.options.getFaults();
    const isKilled = chance.isTrue(faults.killedAfterAppend / 10, `${label} is the last`);
    const send = async () => {
      const result = await this.server.append(stream, expected, events);
      if (isKilled) this.options.kill?.();
      return result;
    };
    if (chance.isTrue(faults.failedAppend, `${label} fails`)) return this.fail('an append fails', label);
    if (chance.isTrue(faults.delayedAppend, `${label} is delayed`)) {
      this.options.onFault?.('an append is delayed');
      return this.call(label, send, { requestMs: APPEND_DELAY_MS });
    }
    if (chance.isTrue(faults.lostResponse, `${label} is lost`)) {
      await this.call(label, send);
      return this.fail('the response to an append is lost', label);
    }
    return this.call(label, send);
  }

  async *read(stream: string, after: number): AsyncGenerator<readonly StoredEvent[]> {
    const { chance } = this.options;
    const faults = this.options.getFaults();
    const head = await this.readHead(stream);
    let revision = after;
    while (revision < (head?.revision ?? NO_STREAM)) {
      const label = this.count(`read ${stream} ${revision}`);
      if (chance.isTrue(faults.failedRead, `${label} fails`)) await this.fail('a read fails', label);
      const page = await this.call(label, () => this.readPage(stream, revision, this.choosePageSize(label)));
      const last = page.at(-1);
      if (!last) return;
      yield page;
      revision = last.revision;
    }
  }

  async readHead(stream: string): Promise<StreamHead | undefined> {
    const label = this.count(`head ${stream}`);
    const { chance } = this.options;
    const faults = this.options.getFaults();
    if (chance.isTrue(faults.failedRead, `${label} fails`)) return this.fail('a read fails', label);
    return this.call(label, () => this.server.store.readHead(stream));
  }

  async readLastPosition(): Promise<bigint> {
    const label = this.count('last position');
    return this.call(label, () => this.server.store.readLastPosition());
  }

  async *readAll(after: bigint): AsyncGenerator<EventBatch> {
    const end = await this.readLastPosition();
    let position = after;
    while (position < end) {
      const batch = await this.readLogPage(position);
      yield batch;
      position = batch.position;
    }
  }

  async *subscribe(after: bigint, signal: AbortSignal): AsyncGenerator<EventBatch> {
    const { chance } = this.options;
    const faults = this.options.getFaults();
    let position = after;
    while (!signal.aborted) {
      await this.waitForEvents(position, signal);
      if (signal.aborted) return;
      const label = this.count(`follow ${position}`);
      if (chance.isTrue(faults.lag, `${label} lags`))
        await this.process.runtime.sleep(chance.between(0, MAX_LAG_MS, `${label} lag`), { signal });
      if (chance.isTrue(faults.endedSubscription, `${label} ends`)) await this.fail('a subscription ends', label);
      if (signal.aborted) return;
      const batch = await this.readLogPage(position);
      position = batch.position;
      yield batch;
    }
  }

  private async waitForEvents(position: bigint, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => this.process.deliver(resolve);
    const stop = this.server.onAppend(wake);
    signal.addEventListener('abort', wake);
    const hasEvents = (await this.server.store.readLastPosition()) > position;
    if (!hasEvents && !signal.aborted) await promise;
    stop();
    signal.removeEventListener('abort', wake);
  }

  private async readLogPage(after: bigint): Promise<EventBatch> {
    const label = this.count(`log ${after}`);
    return this.call(label, async () => {
      const size = this.choosePageSize(label);
      for await (const { events, position } of this.server.store.readAll(after)) {
        const page = events.slice(0, size);
        return { events: page, position: page.length < events.length ? (page.at(-1)?.position ?? after) : position };
      }
      return { events: [], position: after };
    });
  }

  private async readPage(stream: string, after: number, size: number): Promise<readonly StoredEvent[]> {
    for await (const events of this.server.store.read(stream, after)) return events.slice(0, size);
    return [];
  }

  private choosePageSize(label: string): number {
    const { chance } = this.options;
    const faults = this.options.getFaults();
    return chance.isTrue(faults.shortPage, `${label} is short`) ? chance.integer(1, 4, `${label} size`) : MAX_PAGE;
  }

  /** Sends a request to the server, which does `work` when it arrives, and returns the response. */
  private call<T>(label: string, work: () => Promise<T>, { requestMs = 0 } = {}): Promise<T> {
    const { time, chance } = this.options;
    const faults = this.options.getFaults();
    const isSlow = chance.isTrue(faults.slow, `${label} is slow`);
    const maxMs = isSlow ? MAX_SLOW_MS : REQUEST_MS.max;
    const delayMs = chance.between(REQUEST_MS.min, maxMs, `${label} request`);
    const response = time.wait(requestMs + delayMs).then(() => this.serve(work));
    return this.process.receive(response, chance.between(REQUEST_MS.min, maxMs, `${label} response`));
  }

  private async serve<T>(work: () => Promise<T>): Promise<T> {
    const { time, outages } = this.options;
    const outage = outages.find(({ fromMs, untilMs }) => fromMs <= time.nowMs && time.nowMs < untilMs);
    if (!outage) return work();
    if (outage.mode === 'refusing') throw new StoreUnavailableError('the store refuses connections');
    await time.wait(outage.untilMs - time.nowMs);
    return work();
  }

  private async fail(fault: string, label: string): Promise<never> {
    this.options.onFault?.(fault);
    return this.call(label, () => Promise.reject(new StoreUnavailableError(fault)));
  }

  /** Returns a text that no other call has, so that a repeated call may have another result. */
  private count(label: string): string {
    const call = `${this.process.name} ${label}`;
    const count = (this.calls.get(call) ?? 0) + 1;
    this.calls.set(call, count);
    return `${call} ${count}`;
  }
}
