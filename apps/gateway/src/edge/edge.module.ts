import path from 'node:path';
import { Module } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import pg from 'pg';
import {
  type Caller,
  Clock,
  FreeModelLimits,
  getClaimLeaseMs,
  IdempotencyService,
  IdempotencyStore,
  type PaidChallenge,
  PayerFactory,
  RateLimiter,
  RefusedRequestRecorder,
  RefusedRequests,
  Secrets,
  StorageQuota,
  Streams,
} from '#application';
import { PostgresIdempotencyStore } from '#connectors';
import { Connections, Foundation } from '#foundation';
import type { Runtime } from '#kernel';
import { PayingModule, PaymentsModule, Role, SecretsModule, StoresModule, StreamsModule } from '#modules';
import { ProjectorWakeup } from '#projections';
import { Authenticator } from './authentication/authenticator.ts';
import { ContentDatabase, contentProviders } from './content.providers.ts';
import { ErrorFilter } from './errors/errors.ts';
import { type PaidRequestPorts, PaidRequests } from './idempotency/paid-request-handler.ts';
import { LookUps } from './limits/credential-lookups.ts';
import { limitProviders } from './limits/limits.providers.ts';
import { fundedIn, IS_FUNDED, type IsFunded } from './limits/memory-budget.ts';
import { placesBehind } from './network/client-addresses.ts';
import { PublicAddress } from './network/public-address.ts';
import { challengeProviders } from './pay-per-request/challenges.providers.ts';
import { Doors } from './pay-per-request/pay-per-request-gate.ts';
import { BooksReader } from './reading/read-model-reader.ts';
import { Uploads } from './uploads/uploads.ts';
import { Bodies } from './validation/body-parser.ts';
import { ValidationPipe } from './validation/validation.ts';

const SWEEP_EVERY_MS = 60_000;
/** Payers whose refusals are noted. */
const NOTED_PAYERS = Symbol('noted payers');

/** What all surfaces share: callers, reads that follow writes, answers that are kept, and the one error shape. */
@Module({
  imports: [PayingModule, PaymentsModule, SecretsModule, StoresModule, StreamsModule],
  providers: [
    PublicAddress,
    { provide: Connections, inject: [Role], useFactory: openConnections },
    ...challengeProviders,
    ...limitProviders,
    ...contentProviders,
    { provide: APP_PIPE, useClass: ValidationPipe },
    { provide: APP_FILTER, inject: [Role], useFactory: ({ log }: Role) => new ErrorFilter(log) },
    {
      provide: BooksReader,
      inject: [pg.Pool, Foundation, Clock],
      useFactory: (pool: pg.Pool, { store }: Foundation, clock: Clock) =>
        new BooksReader(pool, store, clock, store.hurry && new ProjectorWakeup(pool)),
    },
    {
      provide: Authenticator,
      inject: [BooksReader, Secrets, Clock, LookUps, Role],
      useFactory: (...[books, secrets, clock, lookUps, { settings }]: [BooksReader, Secrets, Clock, LookUps, Role]) =>
        new Authenticator({ books, secrets, clock, lookUps }, settings.creditIdInference),
    },
    { provide: IdempotencyStore, inject: [Role, Foundation, ContentDatabase, Secrets], useFactory: openKeptAnswers },
    {
      provide: IdempotencyService,
      inject: [IdempotencyStore, StorageQuota, Foundation, PayerFactory, Secrets, Clock],
      useFactory: (
        ...[kept, room, { store: facts, runtime }, payers, secrets, clock]: [
          IdempotencyStore,
          StorageQuota,
          Foundation,
          PayerFactory,
          Secrets,
          Clock,
        ]
      ) => new IdempotencyService({ kept, room, facts, payers, secrets, clock, alarm: runtime.alarm }),
    },
    {
      provide: RefusedRequestRecorder,
      inject: [RefusedRequests, Clock, Foundation],
      useFactory: (refused: RefusedRequests, clock: Clock, { runtime }: Foundation) =>
        new RefusedRequestRecorder(refused, clock, runtime.alarm),
    },
    { provide: IS_FUNDED, inject: [Streams], useFactory: fundedIn },
    {
      provide: Bodies,
      inject: [Role, IS_FUNDED],
      useFactory: ({ settings }: Role, isFunded: IsFunded) =>
        new Bodies({ maxBytes: settings.maxBytesInFlight, isFunded }),
    },
    {
      provide: Uploads,
      inject: [Role, Foundation, IS_FUNDED],
      useFactory: async (role: Role, { runtime }: Foundation, isFunded: IsFunded) =>
        role.keep(await openUploads(role, isFunded, runtime.alarm)),
    },
    {
      provide: PaidRequests,
      inject: [Role, NOTED_PAYERS, IdempotencyService, Authenticator, FreeModelLimits, Doors],
      useFactory: (
        role: Role,
        ...[payers, idempotency, authenticator, freeUse, doors]: [
          PaidRequestPorts['payers'],
          IdempotencyService,
          Authenticator,
          FreeModelLimits,
          Doors,
        ]
      ) => role.keep(new PaidRequests({ payers, idempotency, authenticator, freeUse, doors })),
    },
    {
      provide: NOTED_PAYERS,
      inject: [PayerFactory, RefusedRequestRecorder],
      useFactory: (payers: PayerFactory, refusals: RefusedRequestRecorder) => ({
        of: (caller: Caller) => refusals.payerOf(payers.of(caller), caller),
        ofChallenge: (proven: PaidChallenge, again: boolean) => payers.ofChallenge(proven, again),
      }),
    },
  ],
  exports: [
    RateLimiter,
    Bodies,
    ContentDatabase,
    StorageQuota,
    PublicAddress,
    Connections,
    Doors,
    BooksReader,
    Authenticator,
    PaidRequests,
    PayingModule,
    SecretsModule,
    StoresModule,
    StreamsModule,
  ],
})
export class EdgeModule {}

function openConnections(role: Role): Promise<Connections> {
  const { maxConnections: max, maxConnectionsPerAddress: maxPerPlace, trustedProxies } = role.settings;
  const alarm = (problem: string) => role.log.warn(problem);
  return role.keep(new Connections({ max, maxPerPlace, placeOf: placesBehind(trustedProxies), alarm }));
}

function openUploads({ settings }: Role, isFunded: IsFunded, alarm: Runtime['alarm']): Promise<Uploads> {
  const { uploadsDir = path.join(settings.dataDir, 'uploads'), uploadsMaxBytes: maxBytes } = settings;
  return Uploads.open({ directory: uploadsDir, maxBytes, isFunded, alarm });
}

async function openKeptAnswers(role: Role, { runtime }: Foundation, { pool }: ContentDatabase, secrets: Secrets) {
  const kept = new PostgresIdempotencyStore(pool, secrets, getClaimLeaseMs(role.settings));
  const removeExpired = () =>
    kept.removeExpired().catch((error) => runtime.alarm('expired answers could not be removed; trying again', error));
  const timer = setInterval(() => void removeExpired(), SWEEP_EVERY_MS).unref();
  await role.keep({ close: () => clearInterval(timer) });
  return kept;
}
