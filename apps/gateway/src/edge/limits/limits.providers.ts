import type { Provider } from '@nestjs/common';
import pg from 'pg';
import { FreeModelLimits, RateLimiter, Secrets } from '#application';
import { abuseLimitMigrations, PostgresRateLimiter } from '#connectors';
import { Foundation, prepareDatabase } from '#foundation';
import { Role } from '#modules';
import { LookUps } from './credential-lookups.ts';

const SWEEP_EVERY_MS = 60_000;

export const limitProviders: readonly Provider[] = [
  { provide: RateLimiter, inject: [Role, Foundation, pg.Pool, Secrets], useFactory: openLimits },
  { provide: LookUps, inject: [RateLimiter], useFactory: (limits: RateLimiter) => new LookUps(limits) },
  { provide: FreeModelLimits, inject: [RateLimiter], useFactory: (limits: RateLimiter) => new FreeModelLimits(limits) },
];

async function openLimits(role: Role, { databaseUrl, runtime }: Foundation, pool: pg.Pool, secrets: Secrets) {
  await prepareDatabase(databaseUrl, abuseLimitMigrations, role.settings.migrate);
  const limits = new PostgresRateLimiter(pool, secrets, role.settings);
  const removeExpired = () =>
    limits
      .removeExpired()
      .catch((error) => runtime.alarm('what was counted could not be removed; trying again', error));
  const timer = setInterval(() => void removeExpired(), SWEEP_EVERY_MS).unref();
  await role.keep({ close: () => clearInterval(timer) });
  return limits;
}
