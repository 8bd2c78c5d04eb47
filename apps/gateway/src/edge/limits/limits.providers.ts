import type { Provider } from '@nestjs/common';
import pg from 'pg';
import { FreeModelLimits, RateLimiter, Secrets } from '#application';
import { abuseLimitMigrations, PostgresRateLimiter } from '#connectors';
import { Foundation, prepareTables } from '#foundation';
import { ProcessRole } from '#modules';
import { CredentialLookups } from './credential-lookups.ts';

const SWEEP_INTERVAL_MS = 60_000;

export const limitProviders: readonly Provider[] = [
  { provide: RateLimiter, inject: [ProcessRole, Foundation, pg.Pool, Secrets], useFactory: openRateLimiter },
  {
    provide: CredentialLookups,
    inject: [RateLimiter],
    useFactory: (limits: RateLimiter) => new CredentialLookups(limits),
  },
  { provide: FreeModelLimits, inject: [RateLimiter], useFactory: (limits: RateLimiter) => new FreeModelLimits(limits) },
];

async function openRateLimiter(role: ProcessRole, foundation: Foundation, pool: pg.Pool, secrets: Secrets) {
  await prepareTables(foundation, abuseLimitMigrations);
  const limits = new PostgresRateLimiter(pool, secrets, role.settings);
  const removeExpired = () =>
    limits
      .removeExpired()
      .catch((error) =>
        foundation.runtime.reportError('expired rate limit counters could not be removed; retrying', error),
      );
  const timer = setInterval(() => void removeExpired(), SWEEP_INTERVAL_MS).unref();
  await role.closeOnExit({ close: () => clearInterval(timer) });
  return limits;
}
