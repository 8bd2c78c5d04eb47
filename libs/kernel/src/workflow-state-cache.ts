/** The states of a workflow's streams, kept folded so that one that is looked at often is read once. */
import { type Cause, createCauseFromEvent, createRootCause } from './cause.ts';
import { toStreamName } from './command-runner.ts';
import { fold } from './decider.ts';
import type { Message } from './message.ts';
import { type EventReader, NO_STREAM } from './ports.ts';
import type { Workflow, WorkflowStep } from './workflow.ts';

/** More than are looked at in turn: with fewer, each would be forgotten just before its turn. Some two KB each. */
const MAX_KEPT_STATES = 50_000;

interface Folded<State> {
  readonly state: State;
  readonly revision: number;
  /** What follows from this state follows from its last fact. */
  readonly cause: Cause;
}

export class WorkflowStateCache<Command extends Message, State, Event extends Message, S extends WorkflowStep> {
  private readonly workflow: Workflow<Command, State, Event, S>;
  private readonly facts: Pick<EventReader, 'read'>;
  private readonly folded = new Map<string, Folded<State>>();
  /** Streams to which something was, or may have been, appended since they were folded. */
  private readonly outdated = new Set<string>();

  constructor(workflow: Workflow<Command, State, Event, S>, facts: Pick<EventReader, 'read'>) {
    this.workflow = workflow;
    this.facts = facts;
  }

  /** Something was, or may have been, appended. */
  outdate(id: string): void {
    this.outdated.add(id);
  }

  /** What is done for a stream follows from its last fact, and belongs to what that belongs to. */
  causeOf(id: string): Cause {
    return this.folded.get(id)?.cause ?? createRootCause(this.actor, id);
  }

  async read(id: string): Promise<State> {
    const { decider, category } = this.workflow;
    const known = this.folded.get(id);
    if (known && !this.outdated.has(id)) return known.state;
    let { state, revision, cause } = known ?? this.nothingOf(id);
    this.outdated.delete(id); // what is appended from here on outdates it again
    try {
      for await (const batch of this.facts.read(toStreamName(category, id), revision)) {
        state = fold(decider, state, batch as unknown as readonly Event[]);
        const last = batch.at(-1);
        if (!last) continue;
        revision = last.revision;
        cause = createCauseFromEvent(last, this.actor);
      }
    } catch (error) {
      this.forget(id);
      throw error;
    }
    this.keep(id, { state, revision, cause });
    return state;
  }

  private nothingOf(id: string): Folded<State> {
    return { state: this.workflow.decider.initial(), revision: NO_STREAM, cause: createRootCause(this.actor, id) };
  }

  private keep(id: string, folded: Folded<State>): void {
    this.folded.delete(id); // the map's order is the order of last use
    this.folded.set(id, folded);
    if (this.folded.size <= MAX_KEPT_STATES) return;
    for (const oldest of this.folded.keys()) {
      this.forget(oldest);
      return;
    }
  }

  forget(id: string): void {
    this.folded.delete(id);
    this.outdated.delete(id);
  }

  private get actor(): string {
    return `workflow:${this.workflow.name}`;
  }
}
