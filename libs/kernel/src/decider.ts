import type { Message } from './message.ts';

/**
 * The business rules of one category of streams, as pure functions.
 *
 * `decide` returns the events of a command. It returns `[]` if the command changes nothing, for example because it is
 * already fulfilled or no longer applies. It throws a `Rejection` if the sender must learn that the command is not
 * allowed. `evolve` throws no `Rejection`, because the event has happened.
 */
export interface Decider<Command extends Message, State, Event extends Message> {
  getInitialState(): State;
  evolve(state: State, event: Event): State;
  decide(command: Command, state: State): readonly Event[];
}

/**
 * Converts a folded state to and from a snapshot. With a new `version` older snapshots are ignored; no data is lost.
 */
export interface StateCodec<State> {
  readonly version: string;
  encode(state: State): unknown;
  decode(json: never): State;
}

/** Applies events to a state, in order. */
export function fold<State, Event extends Message>(
  decider: Pick<Decider<never, State, Event>, 'evolve'>,
  state: State,
  events: Iterable<Event>,
): State {
  let folded = state;
  for (const event of events) folded = decider.evolve(folded, event);
  return folded;
}
