import type { Cause } from './cause.ts';
import type { Message } from './message.ts';
import { type CommandOutcome, StreamCommandQueue, type StreamCommandQueueOptions } from './stream-command-queue.ts';
import { StreamStateCache } from './stream-state-cache.ts';

/** The one write path: load, fold, decide, append at the expected revision. Nothing else appends. */
export interface CommandRunner<Command extends Message, Event extends Message, State = unknown> {
  /**
   * @throws Rejection as decided; StoreUnavailableError when the store stays away for some seconds, UnknownOutcomeError where something may
   *   have been appended; UnknownEventError when a newer program is needed;
   *   AppendTooLargeError when what follows from this one command is; whatever else the store refuses it with
   */
  run(id: string, command: Command, cause: Cause): Promise<CommandOutcome<Event, State>>;
}

/** What the facts of a stream come to now, whoever appended them: for decisions of other streams. */
export interface StreamStateReader<State> {
  /** @throws StoreUnavailableError, UnknownEventError */
  read(id: string): Promise<State>;
}

export interface CommandRunnerOptions<Command extends Message, State, Event extends Message>
  extends StreamCommandQueueOptions<Command, State, Event> {
  readonly category: string;
  /** Where folded streams are kept, together with those of other categories. */
  readonly cache?: StreamStateCache;
}

export function toStreamName(category: string, id: string): string {
  return `${category}-${id}`;
}

/** Makes the write path of one category of streams. Folded states stay warm; a stream's commands queue behind each other. */
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
