import {
  type AllStreamResolvedEvent,
  type AllStreamSubscription,
  type EventStoreDBClient,
  type Position,
  streamNameFilter,
} from '@eventstore/db-client';
import { type Batch, type Recorded, START } from '#kernel';
import { failed } from './connection.ts';
import { toRecorded } from './events.ts';

/** Facts that wait to be taken; then the server is kept waiting. */
const MAX_WAITING = 4_000;
/** The server reports how far it has searched at least once in so many entries of the log, whether they are ours or not. */
const SEARCH_WINDOW = 500;

/** A subscription to all streams with certain beginnings of their names, taken from in batches. */
export class Feed {
  private readonly subscription: AllStreamSubscription;
  private events: Recorded[] = [];
  private position: bigint;
  private taken: bigint;
  private failure: Error | undefined;
  private wake = () => {};

  constructor(client: EventStoreDBClient, prefixes: readonly string[], after: bigint) {
    this.position = after;
    this.taken = after;
    const filter = streamNameFilter({
      prefixes: [...prefixes],
      maxSearchWindow: SEARCH_WINDOW,
      checkpointInterval: 1,
      checkpointReached: (_, checkpoint) => this.searched(checkpoint),
    });
    this.subscription = client.subscribeToAll({ fromPosition: toPosition(after), filter });
    this.subscription.on('data', (resolved: AllStreamResolvedEvent) => this.add(resolved));
    this.subscription.on('error', (error) => this.fail(error));
    this.subscription.on('end', () => this.fail(new Error('the server ended the subscription')));
  }

  /**
   * What has come since the last call; waits until there is something.
   * @returns undefined when `signal` aborts
   * @throws StoreUnavailable when the subscription has broken and all that came before was taken
   */
  async next(signal: AbortSignal): Promise<Batch | undefined> {
    while (this.position === this.taken && !this.failure && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = () => {
          signal.removeEventListener('abort', done);
          resolve();
        };
        this.wake = done;
        signal.addEventListener('abort', done, { once: true });
      });
    }
    if (signal.aborted) return undefined;
    if (this.position === this.taken) throw this.failure;
    const batch = { events: this.events, position: this.position };
    this.events = [];
    this.taken = this.position;
    if (this.subscription.isPaused()) this.subscription.resume();
    return batch;
  }

  /** Waits for nothing: the call may not even have started. */
  close(): void {
    this.subscription.unsubscribe().catch(() => {}); // then there is nothing to end
    this.subscription.destroy();
  }

  private add({ event }: AllStreamResolvedEvent): void {
    if (!event) return;
    this.events.push(toRecorded(event));
    this.position = event.position.commit;
    if (this.events.length >= MAX_WAITING) this.subscription.pause();
    this.wake();
  }

  /**
   * A checkpoint overtakes the facts that are still in the stream's own buffer, so those are let out first.
   *
   * While a subscription catches up, a checkpoint can name the place where the next entry will begin, with a prepare
   * position before it. Taken for a position it would hide that entry forever, so it is passed over; those that are
   * reported live name the entry that was seen last.
   */
  private searched({ commit, prepare }: Position): void {
    while (this.subscription.read() !== null); // emits 'data'
    if (prepare < commit || commit <= this.position) return;
    this.position = commit;
    this.wake();
  }

  private fail(error: unknown): void {
    this.failure ??= failed('the event store ended a subscription', error);
    this.wake();
  }
}

export function toPosition(position: bigint): Position | 'start' {
  return position === START ? 'start' : { commit: position, prepare: position };
}
