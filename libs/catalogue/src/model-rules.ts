/** Rules of models: what a model accepts apart from the fields that its endpoint supports. */
import {
  createDataFileError,
  enumRule,
  findDuplicate,
  flag,
  listRule,
  mapRule,
  objectRule,
  optionalRule,
  text,
  toFieldLocation,
  type ValidationRule,
  withParent,
} from './validation-rules.ts';

/** The reasoning efforts in ascending order. `none` disables reasoning. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Effort = (typeof EFFORTS)[number];

export const THINKING_MODES = ['budget', 'adaptive'] as const;
export const THINKING_SWITCHES = ['omitted', 'disabled', 'between_tools'] as const;

/** A rule that is missing does not restrict requests. */
export interface ModelRules {
  /**
   * The efforts that the model supports. The nearest one is sent. A model whose efforts do not include `none` always
   * reasons.
   */
  readonly efforts?: readonly Effort[];
  /** The provider's words for efforts that it calls otherwise. */
  readonly effortNames?: Readonly<Partial<Record<Effort, string>>>;
  /**
   * How requests enable the thinking of Anthropic’s models: with a number of tokens, or with an effort. Models of the
   * latter kind support no sampling parameters. The default is `budget`.
   */
  readonly thinking?: (typeof THINKING_MODES)[number];
  /**
   * How requests disable the thinking of Anthropic’s models: without the field `thinking`, or by a type of thinking.
   * Models with such a type think by default. The default is `omitted`.
   */
  readonly thinkingOff?: (typeof THINKING_SWITCHES)[number];
  /**
   * The blocks of thinking of Anthropic's model are valid only after the conversation in which it wrote them. Requests let
   * Anthropic leave out others, which it would reject.
   */
  readonly preservedThinking?: boolean;
  /** Sampling parameters and log probabilities are supported only with the effort `none`. */
  readonly sampling?: 'without_reasoning';
  /** False if the model rejects a `tool_choice` that requires a call. */
  readonly forcedTools?: boolean;
  /** False if the model rejects a conversation that ends with a message of the assistant. */
  readonly prefill?: boolean;
  /** False if the endpoint rejects inputs of an embedding that are lists of token ids. */
  readonly tokenInputs?: boolean;
}

/** Rule sets by name. */
export type RuleSets = Readonly<Record<string, ModelRules>>;

const effortList: ValidationRule = (value, location) => {
  listRule(enumRule(EFFORTS))(value, location);
  const twice = findDuplicate(value as readonly string[]);
  if (twice) throw createDataFileError(withParent(location, twice[1]), `repeats ${twice[0]}`);
  if ((value as readonly string[]).every((effort) => effort === 'none'))
    throw createDataFileError(location, 'must have an effort with which the model reasons');
};

export const modelRulesRule = objectRule({
  efforts: optionalRule(effortList),
  effortNames: optionalRule(objectRule(Object.fromEntries(EFFORTS.map((effort) => [effort, optionalRule(text)])))),
  thinking: optionalRule(enumRule(THINKING_MODES)),
  thinkingOff: optionalRule(enumRule(THINKING_SWITCHES)),
  preservedThinking: optionalRule(flag),
  sampling: optionalRule(enumRule(['without_reasoning'])),
  forcedTools: optionalRule(flag),
  prefill: optionalRule(flag),
  tokenInputs: optionalRule(flag),
});

const ruleSetsRule = mapRule(modelRulesRule);

/** @throws DataFileError with the rule set and the field */
export function parseRuleSets(data: unknown): RuleSets {
  ruleSetsRule(data, toFieldLocation('the rules of models'));
  return data as RuleSets;
}

const NO_RULES: ModelRules = {};

/**
 * Returns the rules of an endpoint: its own, or those of a rule set. An endpoint without rules has those of the set with
 * the name of its parameter list, if there is one.
 */
export function resolveRules(
  modelRules: string | ModelRules | undefined,
  parameters: string | readonly string[],
  sets: RuleSets,
): ModelRules {
  if (typeof modelRules === 'object') return modelRules;
  const name = modelRules ?? parameters;
  return typeof name === 'string' && Object.hasOwn(sets, name) ? (sets[name] as ModelRules) : NO_RULES;
}

/** Sampling parameters and log probabilities, in the names of chats. */
const SAMPLING_PARAMETERS: ReadonlySet<string> = new Set(['temperature', 'top_p', 'logprobs', 'top_logprobs']);

/** Whether a model with these rules rejects a parameter while it reasons. */
export function isRejectedWithReasoning({ sampling }: ModelRules, parameter: string): boolean {
  return sampling === 'without_reasoning' && SAMPLING_PARAMETERS.has(parameter);
}

/** Whether a model with these rules supports an effort as it is. */
export function supportsEffort({ efforts }: ModelRules, effort: Effort): boolean {
  return efforts?.includes(effort) ?? true;
}
