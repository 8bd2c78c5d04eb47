import { named } from '../openapi/operation.ts';
import { BOOLEAN, object } from '../openapi/schemas.ts';

export const Alive = named('Alive', object({ status: { const: 'ok' } }));

export const HealthSchema = named(
  'Health',
  object({
    status: { enum: ['ok', 'unavailable'] },
    draining: { ...BOOLEAN, description: 'The process is shutting down' },
    checks: object({
      postgres: BOOLEAN,
      event_store: BOOLEAN,
      projector: { ...BOOLEAN, description: 'The read models are up to date, within the permitted lag' },
      projector_lag_ms: { type: 'integer', description: '-1 when it is not known' },
    }),
  }),
);
