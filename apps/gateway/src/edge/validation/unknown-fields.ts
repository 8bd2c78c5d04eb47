/**
 * Rejects fields that an operation does not have. Clients that limit a key by a field of another gateway must not get a
 * success and a key without the limit.
 */
import { createRequestSchema } from '../../openapi/request-schema.ts';
import { BadRequestError } from '../errors/errors.ts';

/** Returns the message for a field that is rejected; undefined for one that is accepted or ignored. */
type FieldRule = (name: string) => string | undefined;

type Dto = new () => object;

const rulesByDto = new WeakMap<Dto, FieldRule>();

/**
 * Rejects all fields that the class does not declare.
 * @param ignoredFields fields of the object that the operation returns, which clients may send back
 */
export function RejectsUnknownFields(ignoredFields: readonly string[] = []): ClassDecorator {
  return (target) => {
    const type = target as unknown as Dto;
    let fields: ReadonlySet<string> | undefined;
    rulesByDto.set(type, (name) => {
      fields ??= new Set([...Object.keys(createRequestSchema(type).properties ?? {}), ...ignoredFields]);
      return fields.has(name) ? undefined : `${quote(name)} is not a field of this operation`;
    });
  };
}

/** Rejects fields that read like a limit, and ignores other unknown fields. */
export function RejectsLimits(): ClassDecorator {
  return (target) => {
    rulesByDto.set(target as unknown as Dto, (name) =>
      LIMIT_FIELDS.has(toSnakeCase(name))
        ? `${quote(name)} is not a field of this operation and would limit nothing; limits are set on API keys, see POST /keys`
        : undefined,
    );
  };
}

/** Names of limits and restrictions in the APIs of gateways, apart from the fields of operations that have them. */
const LIMIT_FIELDS: ReadonlySet<string> = new Set([
  'models',
  'allowed_models',
  'model_max_budget',
  'model_rpm_limit',
  'model_tpm_limit',
  'aliases',
  'permissions',
  'blocked',
  'disabled',
  'is_disabled',
  'is_active',
  'allowed_routes',
  'allowed_ips',
  'guardrails',
  'scopes',
  'rpm',
  'tpm',
  'rpm_limit',
  'tpm_limit',
  'rpd_limit',
  'tpd_limit',
  'rate_limit',
  'max_parallel_requests',
  'quota',
  'budget',
  'max_budget',
  'soft_budget',
  'budget_id',
  'budget_duration',
  'budget_limits',
  'budget_reset_at',
  'limit',
  'limit_usd',
  'limit_reset',
  'usage_limit',
  'usage_limit_usd',
  'spend_limit',
  'spending_limit',
  'max_spend',
  'credit_limit',
  'daily_limit',
  'weekly_limit',
  'monthly_limit',
  'reset_period',
  'reset_interval',
  'expire_at',
  'expires_at',
  'expires',
  'duration',
]);

const MAX_QUOTED_CHARACTERS = 60;

function quote(name: string): string {
  return JSON.stringify(name.length > MAX_QUOTED_CHARACTERS ? `${name.slice(0, MAX_QUOTED_CHARACTERS)}…` : name);
}

function toSnakeCase(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase();
}

export function hasFieldRule(type: Dto): boolean {
  return rulesByDto.has(type);
}

/** @throws BadRequestError for the first field that the class rejects */
export function assertFieldsAccepted(type: Dto, body: object): void {
  const findProblem = rulesByDto.get(type);
  if (!findProblem) return;
  for (const name of Object.keys(body)) {
    const problem = findProblem(name);
    if (problem !== undefined) throw new BadRequestError(problem, name.slice(0, MAX_QUOTED_CHARACTERS));
  }
}
