/**
 * The effort of a message, which the request sets and its system messages change. The rules are those of Anthropic's
 * documentation: https://platform.claude.com/docs/en/build-with-claude/effort-per-message.
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { invalidRequest } from '../../errors.ts';
import type { MessagesBody } from './body.ts';
import { isToolResultTurn } from './turns.ts';

const EFFORTS: readonly unknown[] = ['low', 'medium', 'high', 'xhigh', 'max'];

/**
 * Returns the effort for the response; undefined if the model decides. An effort in a system message directly after
 * new input applies to the response to that input; elsewhere, it applies from the next new input on. It stays in force
 * until another message changes it.
 * @throws InvalidRequestError (400) naming the effort that is invalid
 */
export function findEffort({ output_config, messages }: MessagesBody): unknown {
  let current = parseEffort(output_config, 'output_config');
  let next = current;
  let isAfterInput = false;
  for (const [at, message] of messages.entries()) {
    if (!isJsonObject(message)) continue;
    if (message.role === 'system') {
      next = parseEffort(message.output_config, `messages[${at}].output_config`) ?? next;
      if (isAfterInput) current = next;
    } else {
      isAfterInput = isInput(message);
      if (isAfterInput) current = next;
    }
  }
  return current;
}

function parseEffort(config: unknown, param: string): unknown {
  const effort = isJsonObject(config) ? (config.effort ?? undefined) : undefined;
  if (effort === undefined || EFFORTS.includes(effort)) return effort;
  throw invalidRequest(`${param}.effort must be one of ${EFFORTS.join(', ')}`, `${param}.effort`);
}

/** Results of tools alone are no new input. */
function isInput(message: JsonObject): boolean {
  return message.role === 'user' && !isToolResultTurn(message);
}
