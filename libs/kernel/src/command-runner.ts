import type { Cause } from './cause.ts';
import type { Message } from './message.ts';
import { type CommandOutcome, StreamCommandQueue, type StreamCommandQueueOptions } from './stream-command-queue.ts';
import { StreamStateCache } from './stream-state-cache.ts';

/** The write path of streams: load, fold, decide, append at the expected revision. */
export interface CommandRunner<Command extends Message, Event extends Message, State = unknown> {
  /**
   * Runs a command on the stream with this id.
   * @throws Rejection from `decide`; StoreUnavailableError if the store does not respond in time, or other writers
   *   append first too often; UnknownOutcomeError if the events may have been appended; UnknownEventError if the stream
   *   has events of a newer build; AppendTooLargeError if the events of this one command are too large; any other error
   *   of the decider or of the store
   */
  run(id: string, command: Command, cause: Cause): Promise<CommandOutcome<Event, State>>;
}

/** Reads the current state of a stream, for decisions on other streams. */
export interface StreamStateReader<State> {
  /**
   * Returns a state that includes the events of other processes.
   * @throws StoreUnavailableError if the store does not respond; UnknownEventError if the stream has events of a newer
   *   build
   */
  read(id: string): Promise<State>;
}

export interface CommandRunnerOptions<Command extends Message, State, Event extends Message>
  extends StreamCommandQueueOptions<Command, State, Event> {
  readonly category: string;
  /** May be shared with the runners of other categories; by default, the runner has a cache of its own. */
  readonly cache?: StreamStateCache;
}

export function toStreamName(category: string, id: string): string {
  return `${category}-${id}`;
}

/**
 * Creates the write path for one category of streams. Commands of a stream run one after the other on its cached state.
 */
export function createCommandRunner<Command extends Message, State, Event extends Message>(
  options: CommandRunnerOptions<Command, State, Event>,
): CommandRunner<Command, Event, State> & StreamStateReader<State> {
  const queues = new Map<string, StreamCommandQueue<Command, State, Event>>();
  const { cache = new StreamStateCache() } = options;

  function getQueue(id: string): StreamCommandQueue<Command, State, Event> {
    const existing = queues.get(id);
    if (existing) return existing;
    const queue = new StreamCommandQueue(
      toStreamName(options.category, id),
      options,
      cache,
      () => void queues.delete(id),
    );
    queues.set(id, queue);
    return queue;
  }

  return {
    run: (id, command, cause) => getQueue(id).submit(command, cause),
    read: (id) => getQueue(id).read(),
  };
}
