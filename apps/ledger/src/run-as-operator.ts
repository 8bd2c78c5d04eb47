import { randomUUID } from 'node:crypto';
import type { Actor } from '#domain';
import { StartError } from '#foundation';
import { type CommandOutcome, type CommandRunner, createRootCause, type Message, Rejection } from '#kernel';

interface OperatorOptions {
  /** The actor that the metadata of the events records. */
  readonly actor?: Actor;
  /** Follows the message of a rejection. */
  readonly context?: string;
}

/**
 * Runs a command that the operator has given to the command line. It was done before if the outcome has no events.
 * @throws StartError with the message of a rejection
 */
export async function runAsOperator<Command extends Message, Event extends Message, State>(
  runner: CommandRunner<Command, Event, State>,
  id: string,
  command: Command,
  { actor, context = '' }: OperatorOptions = {},
): Promise<CommandOutcome<Event, State>> {
  try {
    return await runner.run(id, command, createRootCause(actor ? `operator:${actor.name}` : 'ledger', randomUUID()));
  } catch (error) {
    if (error instanceof Rejection) throw new StartError(`${error.message}${context}.`);
    throw error;
  }
}
