/** Compares what a request requires of a model with the rules of the model at an endpoint. */
import { type Effort, type Endpoint, isRejectedWithReasoning, supportsEffort } from '#catalogue';

/** What a request requires apart from fields. */
export interface RequestRequirements {
  /** Number of requested choices; 1 if omitted. */
  readonly choices?: number;
  /** The requested effort, `none` if reasoning is disabled; undefined if the request names none. */
  readonly effort?: Effort | undefined;
  /** The model must call a tool. */
  readonly forcesTool?: boolean;
  /** The conversation ends with a message of the assistant, which the model is to continue. */
  readonly endsWithAssistant?: boolean;
  /** The texts to embed are lists of token ids. */
  readonly sendsTokens?: boolean;
}

type RuledEndpoint = Pick<Endpoint, 'parameters' | 'speaks' | 'modelRules' | 'maxChoices' | 'slug'>;

/** A requirement that no endpoint meets, as an error of the request: the caller fixes it by changing one field. */
export interface UnmetRequirement {
  readonly param: string;
  /** Follows the name of the field, such as `must be 1`. */
  readonly requirement: string;
}

const PREFILL = 'does not continue a message of the assistant';
const TOKENS = 'does not accept token ids';

const UNMET: Readonly<Record<string, UnmetRequirement>> = {
  [PREFILL]: { param: 'messages', requirement: 'must not end with a message of the assistant' },
  [TOKENS]: { param: 'input', requirement: 'must be text' },
};

/** Returns why an endpoint cannot satisfy the requirements of a request, whatever its preferences; undefined if it can. */
export function findUnmetRequirement(
  endpoint: RuledEndpoint,
  { choices = 1, endsWithAssistant, sendsTokens }: RequestRequirements,
): string | undefined {
  const { modelRules } = endpoint;
  if (choices > getMaxChoices(endpoint)) return describeMaxChoices(endpoint);
  if (endsWithAssistant && modelRules.prefill === false) return PREFILL;
  return sendsTokens && modelRules.tokenInputs === false ? TOKENS : undefined;
}

/**
 * Returns what an endpoint would not do as requested. Without `require_parameters` the request is adapted to it.
 * @param fields the fields of the request
 */
export function findAdaptedRequirement(
  { modelRules }: RuledEndpoint,
  { effort, forcesTool }: RequestRequirements,
  fields: readonly string[],
): string | undefined {
  if (effort !== undefined && !supportsEffort(modelRules, effort))
    return `does not support the reasoning effort ${effort}`;
  if (forcesTool && modelRules.forcedTools === false) return 'does not support a tool_choice that requires a call';
  const rejected = effort === 'none' ? undefined : fields.find((field) => isRejectedWithReasoning(modelRules, field));
  return rejected && `does not support ${rejected} together with reasoning`;
}

/**
 * Returns the error for a request whose requirements excluded endpoints; undefined if no endpoint was excluded for them.
 * @param exclusionReasons by the slugs of the endpoints
 */
export function describeUnmetRequirement(
  endpoints: readonly RuledEndpoint[],
  exclusionReasons: Readonly<Record<string, string>>,
): UnmetRequirement | undefined {
  const limited = endpoints.filter((endpoint) => exclusionReasons[endpoint.slug] === describeMaxChoices(endpoint));
  if (limited.length > 0) {
    const max = Math.max(...limited.map(getMaxChoices));
    return { param: 'n', requirement: max === 1 ? 'must be 1' : `must be at most ${max}` };
  }
  const reason = Object.values(exclusionReasons).find((text) => Object.hasOwn(UNMET, text));
  return reason === undefined ? undefined : UNMET[reason];
}

/** Only chats have several choices. */
function getMaxChoices({ parameters, speaks, maxChoices = Number.POSITIVE_INFINITY }: RuledEndpoint): number {
  return parameters.includes('n') && speaks.includes('chat') ? maxChoices : 1;
}

function describeMaxChoices(endpoint: RuledEndpoint): string {
  const max = getMaxChoices(endpoint);
  return max === 1 ? 'returns one choice only' : `returns at most ${max} choices`;
}
