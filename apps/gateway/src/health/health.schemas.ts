import { nameSchema } from '../openapi/operation.ts';
import { BOOLEAN, object } from '../openapi/schemas.ts';

export const Alive = nameSchema('Alive', object({ status: { const: 'ok' } }));

export const ReleaseSchema = nameSchema(
  'Release',
  object({
    status: { const: 'ok' },
    version: { type: 'string', description: 'Semantic version of this process' },
    commit: { type: 'string', description: 'Commit from which it was built' },
    schema: { type: 'integer', description: 'Number of database migrations of this version' },
  }),
);

const CHECK = object({
  ok: BOOLEAN,
  required: { ...BOOLEAN, description: 'Whether readiness requires this check; other checks are only reported' },
});

export const HealthSchema = nameSchema(
  'Health',
  object({
    status: { enum: ['ok', 'unavailable'] },
    draining: { ...BOOLEAN, description: 'Whether the process is shutting down' },
    checks: {
      type: 'object',
      description: 'Checks by name, each with additional fields of its own',
      additionalProperties: { ...CHECK, additionalProperties: true },
    },
  }),
);
