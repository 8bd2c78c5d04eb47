import { nameSchema } from '../openapi/operation.ts';
import { BOOLEAN, object } from '../openapi/schemas.ts';

export const Alive = nameSchema('Alive', object({ status: { const: 'ok' } }));

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
