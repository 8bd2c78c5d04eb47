import type { Message } from './message.ts';

/**
 * The rules of one kind of stream, as pure functions.
 *
 * `decide` answers a command with the facts that follow from it, `[]` when it is already fulfilled, or throws a `Rejection`.
 * `evolve` never rejects: a fact happened.
 */
export interface Decider<Command extends Message, State, Event extends Message> {
  getInitialState(): State;
  evolve(state: State, event: Event): State;
  decide(command: Command, state: State): readonly Event[];
}

/** How a folded state is kept as a snapshot. A new `version` makes older snapshots unreadable, which loses nothing. */
export interface StateCodec<State> {
  readonly version: string;
  encode(state: State): unknown;
  decode(json: never): State;
}

/** Folds facts onto a state, in order. */
export function fold<State, Event extends Message>(
  decider: Pick<Decider<never, State, Event>, 'evolve'>,
  state: State,
  events: Iterable<Event>,
): State {
  let folded = state;
  for (const event of events) folded = decider.evolve(folded, event);
  return folded;
}
