/** What the error responses of a provider mean, as data: `errors` of a provider in `providers.json`. */
import { z } from 'zod';
import { integerSchema, patternSchema, text } from './field-schemas.ts';
import { addCheck, type Valid } from './validation.ts';

/** Problems of the operator at an external system. Customers neither cause them nor can they fix them. */
export const OPERATOR_PROBLEMS = [
  /** The credential is not accepted. */
  'credential',
  /** The account has no balance or credit, or its bill is unpaid. */
  'balance',
  /** The account has reached a spending or usage limit. */
  'limit',
  /** The account is blocked, or may not be used from here. */
  'blocked',
  /** The account may not use the model. */
  'permission',
  /** The rate limit of the account is lower than the one request, so waiting does not help. */
  'request_too_large',
  /** The provider no longer has the model. */
  'model_removed',
] as const;
export type OperatorProblemReason = (typeof OPERATOR_PROBLEMS)[number];

/** Meanings that do not concern the operator. */
const OTHER_MEANINGS = ['policy', 'rate_limit', 'overloaded', 'too_long', 'invalid_request'] as const;

/** What a problem of the operator concerns: all calls of the provider, those of one model, or only the failed call. */
export const PROBLEM_SCOPES = ['service', 'endpoint', 'request'] as const;
export type OperatorProblemScope = (typeof PROBLEM_SCOPES)[number];

const fields = z.strictObject({
  status: integerSchema('a status from 300 to 599', 300, 599)
    .optional()
    .describe('HTTP status or, within a stream, a numeric code.'),
  type: text.optional(),
  code: text.optional(),
  message: text
    .optional()
    .describe(
      'The complete message; `*` stands for any text, but at the beginning only for one word, such as the name of a ' +
        'model: providers quote requests in their messages, and a customer must not be able to write a message that ' +
        'matches.',
    ),
  field: patternSchema('a path, such as "metadata.flagged_input"', /^\w+(\.\w+){0,3}$/)
    .optional()
    .describe('Path of a field of the error that must be present, such as `metadata.flagged_input`.'),
  means: z.enum([...OPERATOR_PROBLEMS, ...OTHER_MEANINGS]),
  scope: z.enum(PROBLEM_SCOPES).optional().describe('Overrides the usual scope of a problem of the operator.'),
});

const CONDITIONS = ['status', 'type', 'code', 'message', 'field'] as const;

/** Matches error responses in which all given fields are equal. The first rule that matches applies. */
export const errorRule = addCheck(fields, ({ means, scope, ...rule }, report) => {
  if (!CONDITIONS.some((condition) => condition in rule)) report(`needs at least one of ${CONDITIONS.join(', ')}`);
  if (scope !== undefined && !isOperatorProblem(means)) report(`does not apply to ${means}`, 'scope');
});
export type ErrorRuleFile = Valid<typeof errorRule>;

export function isOperatorProblem(means: string): means is OperatorProblemReason {
  return (OPERATOR_PROBLEMS as readonly string[]).includes(means);
}
