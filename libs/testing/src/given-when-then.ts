import { expect } from '@jest/globals';
import { type Decider, fold, type Message, Rejection, type Workflow, type WorkflowStep } from '#kernel';

/** Tests a decider: given past events, when a command is decided, then these events result, or a rejection. */
export function createDeciderTest<Command extends Message, State, Event extends Message>(
  decider: Decider<Command, State, Event>,
) {
  return (...past: readonly Event[]) => {
    const state = fold(decider, decider.getInitialState(), past);
    return {
      state,
      when: (command: Command) => ({
        // biome-ignore lint/suspicious/noThenProperty: given-when-then is the usual form of such tests, and this is never awaited
        then: (...events: readonly Event[]) => expect(decider.decide(command, state)).toEqual(events),
        thenAlreadySo: () => expect(decider.decide(command, state)).toEqual([]),
        thenRefused: (code: string) => {
          try {
            decider.decide(command, state);
          } catch (error) {
            expect(error).toBeInstanceOf(Rejection);
            expect((error as Rejection).code).toBe(code);
            return (error as Rejection).details;
          }
          throw new Error(`expected a rejection with ${code}, but the command was accepted`);
        },
        events: () => decider.decide(command, state),
      }),
    };
  };
}

/** Tests a workflow: given past events, when it is planned at a time, then it has these steps and this due time. */
export function createWorkflowTest<Command extends Message, State, Event extends Message, S extends WorkflowStep>(
  workflow: Pick<Workflow<Command, State, Event, S>, 'decider' | 'plan'>,
) {
  return (...past: readonly Event[]) => ({
    when: (now: string) => {
      const state = fold(workflow.decider, workflow.decider.getInitialState(), past);
      const { steps, dueAt } = workflow.plan(state, now);
      return {
        // biome-ignore lint/suspicious/noThenProperty: as above
        then: (expected: readonly S[], expectedDueAt?: string) => {
          expect({ steps, dueAt }).toEqual({ steps: expected, dueAt: expectedDueAt });
        },
      };
    },
  });
}
