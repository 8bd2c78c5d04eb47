import { randomUUID } from 'node:crypto';
import { StartError } from '#foundation';
import { type CommandRunner, createRootCause, type Message, Rejection } from '#kernel';

/**
 * Runs a command that the operator has given to the command line.
 * @param context follows the message of a rejection
 * @returns whether the command has appended events; otherwise it was done before
 * @throws StartError with the message of a rejection
 */
export async function runAsOperator<Command extends Message>(
  runner: CommandRunner<Command, Message>,
  id: string,
  command: Command,
  context = '',
): Promise<boolean> {
  try {
    const { events } = await runner.run(id, command, createRootCause('ledger', randomUUID()));
    return events.length > 0;
  } catch (error) {
    if (error instanceof Rejection) throw new StartError(`${error.message}${context}.`);
    throw error;
  }
}
