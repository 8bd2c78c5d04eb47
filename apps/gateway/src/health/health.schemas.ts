import { named } from '../openapi/operation.ts';
import { BOOLEAN, object } from '../openapi/schemas.ts';

export const Alive = named('Alive', object({ status: { const: 'ok' } }));

export const Health = named(
  'Health',
  object({
    status: { enum: ['ok', 'unavailable'] },
    draining: { ...BOOLEAN, description: 'The process is about to stop' },
    checks: object({
      postgres: BOOLEAN,
      event_store: BOOLEAN,
      projector: { ...BOOLEAN, description: 'The read models are not too far behind' },
      projector_lag_ms: { type: 'integer', description: '-1 when it cannot be told' },
    }),
  }),
);
