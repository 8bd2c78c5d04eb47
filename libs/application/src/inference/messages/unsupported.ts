/**
 * Members of Anthropic's requests that change the output, or where it is computed, and are not supported. They are
 * rejected by name, except for values that change nothing. The spec lists what happens to every member of the SDK's
 * types.
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError, invalidRequest } from '../../errors.ts';

/** Returns whether a value changes nothing. Null, missing and empty arrays always change nothing. */
type IsAccepted = (value: unknown) => boolean;

type AcceptedValues = Readonly<Record<string, IsAccepted>>;

const never: IsAccepted = () => false;
const only =
  (...values: readonly unknown[]): IsAccepted =>
  (value) =>
    values.includes(value);
const withField =
  (name: string, isAccepted: IsAccepted): IsAccepted =>
  (value) =>
    isJsonObject(value) && (!isSet(value[name]) || isAccepted(value[name]));

export const REQUEST_RULES: AcceptedValues = {
  billing_policy: withField('bill_to', only('self')),
  compaction: never,
  container: never,
  fallback_credit_token: never,
  /** Models without fallbacks ignore `default`, and no model has some here. */
  fallbacks: only('default'),
  inference_geo: never,
  mcp_servers: never,
  speed: only('standard'),
};

/**
 * Rejects a conversation that the server would store, where there is no store. Anthropic's clients, such as the tool
 * runner of the SDK, send all of it after an error with this code.
 * @throws InvalidRequestError (400)
 */
export function assertNoThread({ thread }: JsonObject): void {
  if (!isSet(thread)) return;
  const message = 'thread is not supported: send the complete conversation without it';
  throw new InvalidRequestError(400, message, 'thread', { code: 'thread_unsupported_request' });
}

export const OUTPUT_CONFIG_RULES: AcceptedValues = { task_budget: never };

/** Blocks of thinking that no longer fit are always dropped. */
export const THINKING_RULES: AcceptedValues = {
  block_binding: withField('prefix_mismatch_behavior', only('drop_block')),
};

/** Code that the model runs, which is not supported, is the only other caller. */
export const TOOL_RULES: AcceptedValues = {
  allowed_callers: (value) => Array.isArray(value) && value.includes('direct'),
  response_inclusion: only('full'),
};

export const BLOCK_RULES: AcceptedValues = {
  citations: (value) => Array.isArray(value) || withField('enabled', only(false))(value),
  transformations: withField('oversized_image', only('downsize')),
};

/**
 * @param path of the object in the request, with a final dot; empty for the request itself
 * @throws InvalidRequestError (400) naming the member that is not supported
 */
export function assertSupported(object: JsonObject, accepted: AcceptedValues, path = ''): void {
  for (const [name, isAccepted] of Object.entries(accepted)) {
    const value = object[name];
    if (!isSet(value) || isAccepted(value)) continue;
    const param = path + name;
    const message = isAccepted === never ? `${param} is not supported` : `This value of ${param} is not supported`;
    throw new InvalidRequestError(400, message, param);
  }
}

function isSet(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null;
}

/**
 * Parses `context_management`: of its edits, only the one that clears old thinking is supported.
 * @returns for how many turns of the assistant thinking is retained
 * @throws InvalidRequestError (400) naming the edit that is invalid or not supported
 */
export function parseRetainedThinkingTurns(contextManagement: unknown): number {
  if (!isSet(contextManagement)) return Number.POSITIVE_INFINITY;
  const edits = isJsonObject(contextManagement) ? (contextManagement.edits ?? []) : undefined;
  if (!Array.isArray(edits)) throw invalidRequest('edits must be an array', 'context_management.edits');
  let retainedTurns = Number.POSITIVE_INFINITY;
  for (const [at, edit] of edits.entries())
    retainedTurns = Math.min(retainedTurns, parseEdit(edit, `context_management.edits[${at}]`));
  return retainedTurns;
}

/** Anthropic's default is to retain the thinking of the last turn. */
function parseEdit(edit: unknown, param: string): number {
  const { type, keep: retained } = isJsonObject(edit) ? edit : {};
  if (type !== 'clear_thinking_20251015')
    throw invalidRequest('Only edits of the type "clear_thinking_20251015" are supported', `${param}.type`);
  if (!isSet(retained)) return 1;
  if (retained === 'all' || (isJsonObject(retained) && retained.type === 'all')) return Number.POSITIVE_INFINITY;
  const { type: unit, value } = isJsonObject(retained) ? retained : {};
  if (unit === 'thinking_turns' && Number.isSafeInteger(value) && (value as number) >= 1) return value as number;
  throw invalidRequest('The number of thinking_turns must be positive, or "all"', `${param}.keep`);
}
