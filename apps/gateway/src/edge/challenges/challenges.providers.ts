import type { Provider } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import pg from 'pg';
import {
  ChallengeLimits,
  ChallengeTokens,
  Clock,
  ExchangeRates,
  IssueChallengeHandler,
  OfferedPayments,
  Proofs,
  Secrets,
  Streams,
} from '#application';
import { challengeLimitMigrations, PostgresChallengeLimits } from '#connectors';
import { Foundation, migrate } from '#infra';
import { Role } from '#modules';
import { PublicAddress } from '../public-address.ts';
import { Doors } from './doors.ts';

const SWEEP_EVERY_MS = 60_000;

export const challengeProviders: readonly Provider[] = [
  { provide: ChallengeTokens, inject: [Secrets], useFactory: (secrets: Secrets) => new ChallengeTokens(secrets) },
  {
    provide: Proofs,
    inject: [Streams, ChallengeTokens, Secrets, Clock],
    useFactory: ({ challenges }: Streams, tokens: ChallengeTokens, secrets: Secrets, clock: Clock) =>
      new Proofs(challenges, tokens, secrets, clock),
  },
  { provide: ChallengeLimits, inject: [Role, Foundation, pg.Pool], useFactory: openLimits },
  {
    provide: IssueChallengeHandler,
    inject: [Streams, OfferedPayments, ExchangeRates, ChallengeTokens, Secrets, Clock],
    useFactory: (
      ...[streams, offered, rates, tokens, secrets, clock]: [
        Streams,
        OfferedPayments,
        ExchangeRates,
        ChallengeTokens,
        Secrets,
        Clock,
      ]
    ) => new IssueChallengeHandler({ streams, offered, rates, tokens, secrets, clock }),
  },
  {
    provide: Doors,
    inject: [CommandBus, OfferedPayments, Proofs, ChallengeLimits, Secrets, PublicAddress],
    useFactory: (
      ...[commands, offered, proofs, limits, secrets, address]: [
        CommandBus,
        OfferedPayments,
        Proofs,
        ChallengeLimits,
        Secrets,
        PublicAddress,
      ]
    ) => new Doors({ commands, offered, proofs, limits, secrets, address }),
  },
];

async function openLimits(role: Role, { databaseUrl, runtime }: Foundation, pool: pg.Pool) {
  await migrate(databaseUrl, challengeLimitMigrations);
  const limits = new PostgresChallengeLimits(pool, role.settings);
  const removeExpired = () =>
    limits
      .removeExpired()
      .catch((error) => runtime.alarm('what was counted could not be removed; trying again', error));
  const timer = setInterval(() => void removeExpired(), SWEEP_EVERY_MS).unref();
  await role.keep({ close: () => clearInterval(timer) });
  return limits;
}
