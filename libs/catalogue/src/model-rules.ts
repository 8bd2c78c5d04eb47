/** Rules of models: what a model accepts apart from the fields that its endpoint supports. */
import { z } from 'zod';
import { flag, listSchema, mapSchema, text } from './field-schemas.ts';
import { addCheck, findDuplicates, nameFile, type ReportProblem, type Valid, validate } from './validation.ts';

/** The reasoning efforts in ascending order. `none` disables reasoning. */
export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type Effort = (typeof EFFORTS)[number];

/** A rule that is missing does not restrict requests. */
export const modelRules = z.strictObject({
  efforts: addCheck(listSchema(z.enum(EFFORTS)), checkEfforts)
    .optional()
    .describe(
      'The efforts that the model supports. The nearest one is sent. A model whose efforts do not include `none` ' +
        'always reasons.',
    ),
  effortNames: z
    .partialRecord(z.enum(EFFORTS), text)
    .optional()
    .describe("The provider's words for efforts that it calls otherwise."),
  thinking: z
    .enum(['budget', 'adaptive'])
    .optional()
    .describe(
      "How requests enable the thinking of Anthropic's models: with a number of tokens, or with an effort. Models of " +
        'the latter kind support no sampling parameters. The default is `budget`.',
    ),
  thinkingOff: z
    .enum(['omitted', 'disabled', 'between_tools'])
    .optional()
    .describe(
      "How requests disable the thinking of Anthropic's models: without the field `thinking`, or by a type of " +
        'thinking. Models with such a type think by default. The default is `omitted`.',
    ),
  preservedThinking: flag
    .optional()
    .describe(
      "The blocks of thinking of Anthropic's model are valid only after the conversation in which it wrote them. " +
        'Requests let Anthropic leave out others, which it would reject.',
    ),
  sampling: z
    .enum(['without_reasoning'])
    .optional()
    .describe('Sampling parameters and log probabilities are supported only with the effort `none`.'),
  forcedTools: flag.optional().describe('False if the model rejects a `tool_choice` that requires a call.'),
  prefill: flag
    .optional()
    .describe('False if the model rejects a conversation that ends with a message of the assistant.'),
  tokenInputs: flag
    .optional()
    .describe('False if the endpoint rejects inputs of an embedding that are lists of token ids.'),
});
export type ModelRules = Valid<typeof modelRules>;

export const ruleSets = mapSchema(modelRules);

/** Rule sets by name. */
export type RuleSets = Valid<typeof ruleSets>;

function checkEfforts(efforts: readonly Effort[], report: ReportProblem): void {
  for (const [effort, i] of findDuplicates(efforts)) report(`repeats ${effort}`, i);
  if (efforts.every((effort) => effort === 'none')) report('must have an effort with which the model reasons');
}

/** @throws DataFileError with the rule set and the field */
export function parseRuleSets(data: unknown): RuleSets {
  return validate(ruleSets, data, nameFile('the rules of models'));
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
