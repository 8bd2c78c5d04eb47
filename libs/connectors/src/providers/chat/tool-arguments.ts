import { countJsonValues } from '#application';
import { invalidRequest } from '../../http/field-filter.ts';

/**
 * Limits of the arguments of one tool call, whose parsing cannot be divided: 12 ms with new names. The longest output of
 * a model, 128,000 tokens, has half of these characters, and usually one mark of a value for four tokens or more.
 */
const MAX_CHARACTERS = 2 * 1024 * 1024;
const MAX_VALUES = 32_768;

/**
 * Parses the arguments of a tool call in a conversation. Missing arguments are an empty object.
 * @throws UpstreamError with `invalid_request` if they are not JSON, or too long to be parsed at once
 */
export function parseToolArguments(sent: unknown): unknown {
  const text = String(sent ?? '').trim() || '{}';
  if (text.length > MAX_CHARACTERS)
    throw invalidArguments(`The arguments of a tool call must have at most ${MAX_CHARACTERS} characters`);
  if (countJsonValues(text, MAX_VALUES) > MAX_VALUES)
    throw invalidArguments(
      `The arguments of a tool call must have at most ${MAX_VALUES} of the characters {, [, : and ,`,
    );
  try {
    return JSON.parse(text);
  } catch {
    throw invalidArguments('The arguments of a tool call must be JSON');
  }
}

function invalidArguments(message: string) {
  return invalidRequest(message, 'messages');
}
