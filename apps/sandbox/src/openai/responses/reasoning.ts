/**
 * Simulates encrypted reasoning, which clients send back with the next request without reading it. The content is only
 * JSON in base64.
 */
import { isObject, type SandboxContentPart } from '../chat-request.ts';
import { invalidRequestError } from '../errors.ts';

/** The prefix of OpenAI's encrypted content. */
const MARK = 'gAAAA';
/** Approximate number of base64 characters per token in OpenAI's encrypted content. */
const CHARACTERS_PER_TOKEN = 6;

const REQUIRED_NEXT_TYPES: ReadonlySet<unknown> = new Set([
  'function_call',
  'custom_tool_call',
  'reasoning',
  'web_search_call',
]);

/** @param tokens the number of reasoning tokens */
export function encryptReasoning(id: string, tokens: number): string {
  const sealed = JSON.stringify({ id, tokens });
  const padded = sealed.padEnd((tokens * CHARACTERS_PER_TOKEN * 3) / 4);
  return MARK + Buffer.from(padded).toString('base64');
}

/**
 * Returns the number of tokens of a reasoning item in the input. The id of the item is optional.
 * @param next the item after the reasoning item
 * @throws HttpError if the id is invalid, if the encrypted content is missing, unreadable or that of another item, or
 * if the next item is not output of the model
 */
export function parseReasoningTokens(
  { id, encrypted_content }: SandboxContentPart,
  next: unknown,
  name: string,
): number {
  if (id !== undefined && (typeof id !== 'string' || !id.startsWith('rs'))) {
    const message = `Invalid '${name}.id': '${id}'. Expected an ID that begins with 'rs'.`;
    throw invalidRequestError(400, message, `${name}.id`, 'invalid_value');
  }
  if (typeof encrypted_content !== 'string') {
    const message =
      `Item with id '${id}' not found. Items are not persisted when \`store\` is set to false. ` +
      'Try again with `store` set to true, or remove this item from your input.';
    throw invalidRequestError(404, message, 'input');
  }
  const sealed = decryptContent(encrypted_content);
  if (sealed === undefined || (id !== undefined && sealed.id !== id)) {
    const message =
      'The encrypted content could not be verified. Reason: its item_id did not match the target item id.';
    throw invalidRequestError(400, message, null, 'invalid_encrypted_content');
  }
  const hasRequiredNext = isObject(next) && (next.role === 'assistant' || REQUIRED_NEXT_TYPES.has(next.type));
  if (hasRequiredNext) return sealed.tokens;
  const message = `Item '${id}' of type 'reasoning' was provided without its required following item.`;
  throw invalidRequestError(400, message, 'input');
}

function decryptContent(content: string): { readonly id: string; readonly tokens: number } | undefined {
  try {
    return JSON.parse(Buffer.from(content.slice(MARK.length), 'base64').toString());
  } catch {
    return undefined; // invalid JSON
  }
}
