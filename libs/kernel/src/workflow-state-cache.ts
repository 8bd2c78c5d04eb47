/** Caches the folded states of a workflow's streams, so that a stream that is polled often is not read every time. */
import { type Cause, createCauseFromEvent, createRootCause } from './cause.ts';
import { toStreamName } from './command-runner.ts';
import { fold } from './decider.ts';
import type { Message } from './message.ts';
import { type EventReader, NO_STREAM } from './ports.ts';
import type { Workflow, WorkflowStep } from './workflow.ts';

/**
 * More than the streams that are polled in rotation: a smaller cache would evict every state before its next poll.
 * A state takes about 2 KB.
 */
const MAX_CACHED_STATES = 50_000;

interface CachedState<State> {
  readonly state: State;
  readonly revision: number;
  /** Cause of the commands that follow from this state: its last event. */
  readonly cause: Cause;
}

export class WorkflowStateCache<Command extends Message, State, Event extends Message, S extends WorkflowStep> {
  private readonly workflow: Workflow<Command, State, Event, S>;
  private readonly eventReader: Pick<EventReader, 'read'>;
  private readonly states = new Map<string, CachedState<State>>();
  /** Streams to which events were, or may have been, appended since they were folded. */
  private readonly outdated = new Set<string>();

  constructor(workflow: Workflow<Command, State, Event, S>, eventReader: Pick<EventReader, 'read'>) {
    this.workflow = workflow;
    this.eventReader = eventReader;
  }

  /** Records that events were, or may have been, appended to a stream. */
  invalidate(id: string): void {
    this.outdated.add(id);
  }

  /** Returns the cause of the next steps of a stream: its last event, or the workflow itself if no event is cached. */
  getCause(id: string): Cause {
    return this.states.get(id)?.cause ?? createRootCause(this.actor, id);
  }

  async read(id: string): Promise<State> {
    const { decider, category } = this.workflow;
    const cached = this.states.get(id);
    if (cached && !this.outdated.has(id)) return cached.state;
    let { state, revision, cause } = cached ?? this.createInitial(id);
    this.outdated.delete(id); // before the read: an append during the read marks the stream as outdated again
    try {
      for await (const batch of this.eventReader.read(toStreamName(category, id), revision)) {
        state = fold(decider, state, batch as unknown as readonly Event[]);
        const last = batch.at(-1);
        if (!last) continue;
        revision = last.revision;
        cause = createCauseFromEvent(last, this.actor);
      }
    } catch (error) {
      this.evict(id);
      throw error;
    }
    this.store(id, { state, revision, cause });
    return state;
  }

  private createInitial(id: string): CachedState<State> {
    return {
      state: this.workflow.decider.getInitialState(),
      revision: NO_STREAM,
      cause: createRootCause(this.actor, id),
    };
  }

  private store(id: string, folded: CachedState<State>): void {
    this.states.delete(id); // the map's order is the order in which the states were folded
    this.states.set(id, folded);
    if (this.states.size <= MAX_CACHED_STATES) return;
    for (const oldest of this.states.keys()) {
      this.evict(oldest);
      return;
    }
  }

  evict(id: string): void {
    this.states.delete(id);
    this.outdated.delete(id);
  }

  private get actor(): string {
    return `workflow:${this.workflow.name}`;
  }
}
