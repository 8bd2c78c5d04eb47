import { nameSchema } from '../openapi/operation.ts';
import { BOOLEAN, object } from '../openapi/schemas.ts';

export const Alive = nameSchema('Alive', object({ status: { const: 'ok' } }));

const CHECK = object({
  ok: BOOLEAN,
  required: { ...BOOLEAN, description: 'The process is ready only while this is well; others are only shown' },
});

export const HealthSchema = nameSchema(
  'Health',
  object({
    status: { enum: ['ok', 'unavailable'] },
    draining: { ...BOOLEAN, description: 'The process is shutting down' },
    checks: {
      type: 'object',
      description: 'By name, each with figures of its own',
      additionalProperties: { ...CHECK, additionalProperties: true },
    },
  }),
);
