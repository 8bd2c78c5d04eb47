import { Module } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import pg from 'pg';
import { Accounts, Clock, Secrets, WatchedPayers } from '#application';
import { Foundation, migrate } from '#infra';
import { PayingModule, Role, SecretsModule, StoresModule } from '#modules';
import { Authenticator } from './authenticator.ts';
import { BooksReader } from './books-reader.ts';
import { ErrorFilter } from './errors.ts';
import { Idempotency, leaseOf } from './idempotency.ts';
import { answerMigrations, KeptAnswers } from './kept-answers.ts';
import { PublicAddress } from './public-address.ts';
import { ValidationPipe } from './validation.pipe.ts';

/** What all surfaces share: who asks, reads that follow writes, answers that are kept, and the one error shape. */
@Module({
  imports: [PayingModule, SecretsModule, StoresModule],
  providers: [
    PublicAddress,
    { provide: APP_PIPE, useClass: ValidationPipe },
    { provide: APP_FILTER, inject: [Role], useFactory: ({ log }: Role) => new ErrorFilter(log) },
    {
      provide: BooksReader,
      inject: [pg.Pool, Foundation],
      useFactory: (pool: pg.Pool, { store }: Foundation) => new BooksReader(pool, store),
    },
    {
      provide: Authenticator,
      inject: [BooksReader, Secrets, Clock],
      useFactory: (books: BooksReader, secrets: Secrets, clock: Clock) => new Authenticator(books, secrets, clock),
    },
    { provide: KeptAnswers, inject: [Foundation, pg.Pool, Secrets], useFactory: openKeptAnswers },
    {
      provide: Idempotency,
      inject: [Role, Foundation, KeptAnswers, BooksReader, Accounts, WatchedPayers, Authenticator, Secrets, Clock],
      useFactory: openIdempotency,
    },
  ],
  exports: [PublicAddress, BooksReader, Authenticator, Idempotency, PayingModule, SecretsModule, StoresModule],
})
export class EdgeModule {}

async function openKeptAnswers({ databaseUrl, settings }: Foundation, pool: pg.Pool, secrets: Secrets) {
  await migrate(databaseUrl, answerMigrations);
  return new KeptAnswers(pool, secrets, leaseOf(settings));
}

type IdempotencyParts = readonly [
  Role,
  Foundation,
  KeptAnswers,
  BooksReader,
  Accounts,
  WatchedPayers,
  Authenticator,
  Secrets,
  Clock,
];

function openIdempotency(...[role, foundation, ...parts]: IdempotencyParts): Promise<Idempotency> {
  const [kept, books, accounts, payers, authenticator, secrets, clock] = parts;
  const { alarm } = foundation.runtime;
  return role.keep(new Idempotency({ kept, books, accounts, payers, authenticator, secrets, clock, alarm }));
}
