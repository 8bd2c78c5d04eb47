/**
 * A saga reacts to facts; it refuses none. What it wants is data, so that its rules can be read and tested without the
 * world. Facts come at least once and in order, so every command can be repeated.
 */

import type { DomainEvent } from '#domain';
import { type CheckpointStore, type Recorded, Rejection, type Runtime, type Sink } from '#kernel';

export interface Saga<Wish> {
  readonly name: string;
  /** What follows from a fact: nothing, or commands that are sent in order. */
  react(fact: Recorded<DomainEvent>): readonly Wish[];
}

/**
 * Runs a saga as a sink for `pump`: the checkpoint moves once everything that a batch asks for is done. A command that is
 * refused would be refused again: it is an alarm, and those behind it go on.
 */
export function sagaSink<Wish>(
  saga: Saga<Wish>,
  send: (wish: Wish) => Promise<void>,
  checkpoints: CheckpointStore,
  { alarm }: Pick<Runtime, 'alarm'>,
): Sink {
  const sendOrAlarm = async (wish: Wish) => {
    try {
      await send(wish);
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      alarm(`${saga.name} asked for something that is refused`, error);
    }
  };
  return {
    name: saga.name,
    checkpoint: () => checkpoints.load(saga.name),
    async apply({ events, position }) {
      for (const fact of events) for (const wish of saga.react(fact as Recorded<DomainEvent>)) await sendOrAlarm(wish);
      await checkpoints.save(saga.name, position);
    },
  };
}
