import path from 'node:path';
import { Module } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import pg from 'pg';
import {
  CatalogueService,
  Clock,
  FileStore,
  FreeModelLimits,
  getClaimLeaseMs,
  HeavyWorkQueue,
  IdempotencyService,
  IdempotencyStore,
  PayerFactory,
  RateLimiter,
  RefusedRequestRecorder,
  RefusedRequests,
  Secrets,
  StorageQuota,
  Streams,
} from '#application';
import { PostgresIdempotencyStore } from '#connectors';
import { ConnectionGuard, Foundation } from '#foundation';
import type { Runtime } from '#kernel';
import {
  BillingModule,
  CatalogueModule,
  FilesModule,
  injectByName,
  PaymentsModule,
  ProcessRole,
  SecretsModule,
  StoresModule,
  StreamsModule,
} from '#modules';
import { ProjectorWakeup } from '#projections';
import { Authenticator } from './authentication/authenticator.ts';
import { ContentDatabase, contentProviders } from './content.providers.ts';
import { ErrorFilter } from './errors/errors.ts';
import { type PaidRequestDependencies, PaidRequestHandler } from './idempotency/paid-request-handler.ts';
import { CredentialLookups } from './limits/credential-lookups.ts';
import { limitProviders } from './limits/limits.providers.ts';
import { createFundedCheck, IS_FUNDED, type IsFunded } from './limits/memory-budget.ts';
import { createClientAddressResolver } from './network/client-addresses.ts';
import { PublicBaseUrl } from './network/public-base-url.ts';
import { challengeProviders } from './pay-per-request/challenges.providers.ts';
import { PayPerRequestGate } from './pay-per-request/pay-per-request-gate.ts';
import { ReadModelReader } from './reading/read-model-reader.ts';
import { RetirementNotices } from './responses/retirement-notices.ts';
import { Uploads } from './uploads/uploads.ts';
import { BodyParser } from './validation/body-parser.ts';
import { ValidationPipe } from './validation/validation.ts';

const SWEEP_INTERVAL_MS = 60_000;

/** Shared by all API modules: authentication, reads that include earlier writes, idempotency, and error handling. */
@Module({
  imports: [BillingModule, CatalogueModule, FilesModule, PaymentsModule, SecretsModule, StoresModule, StreamsModule],
  providers: [
    PublicBaseUrl,
    {
      provide: HeavyWorkQueue,
      inject: [Foundation],
      useFactory: ({ runtime }: Foundation) => new HeavyWorkQueue(runtime),
    },
    { provide: ConnectionGuard, inject: [ProcessRole], useFactory: openConnections },
    ...challengeProviders,
    ...limitProviders,
    ...contentProviders,
    { provide: APP_PIPE, useClass: ValidationPipe },
    { provide: APP_FILTER, inject: [ProcessRole], useFactory: ({ log }: ProcessRole) => new ErrorFilter(log) },
    {
      provide: ReadModelReader,
      inject: [pg.Pool, Foundation, Clock],
      useFactory: (pool: pg.Pool, { store }: Foundation, clock: Clock) =>
        new ReadModelReader(pool, store, clock, store.pollNow && new ProjectorWakeup(pool)),
    },
    {
      provide: Authenticator,
      inject: [ReadModelReader, Secrets, Clock, CredentialLookups, ProcessRole],
      useFactory: (
        readModels: ReadModelReader,
        secrets: Secrets,
        clock: Clock,
        lookups: CredentialLookups,
        { settings }: ProcessRole,
      ) => new Authenticator({ readModels, secrets, clock, lookups }, settings.creditIdInference),
    },
    {
      provide: IdempotencyStore,
      inject: [ProcessRole, Foundation, ContentDatabase, Secrets, FileStore],
      useFactory: openIdempotencyStore,
    },
    {
      provide: IdempotencyService,
      inject: [IdempotencyStore, StorageQuota, Foundation, PayerFactory, Secrets, Clock],
      useFactory: (
        idempotencyStore: IdempotencyStore,
        quota: StorageQuota,
        { store: eventStore, runtime }: Foundation,
        payers: PayerFactory,
        secrets: Secrets,
        clock: Clock,
      ) =>
        new IdempotencyService({
          store: idempotencyStore,
          quota,
          events: eventStore,
          payers,
          secrets,
          clock,
          runtime,
        }),
    },
    {
      provide: RefusedRequestRecorder,
      inject: [RefusedRequests, Clock, Foundation],
      useFactory: (refusedRequests: RefusedRequests, clock: Clock, { runtime }: Foundation) =>
        new RefusedRequestRecorder(refusedRequests, clock, runtime.reportError),
    },
    { provide: IS_FUNDED, inject: [Streams], useFactory: createFundedCheck },
    {
      provide: BodyParser,
      inject: [ProcessRole, IS_FUNDED, HeavyWorkQueue],
      useFactory: ({ settings }: ProcessRole, isFunded: IsFunded, heavyWork: HeavyWorkQueue) =>
        new BodyParser({ maxBytes: settings.maxBytesInFlight, isFunded, heavyWork }),
    },
    {
      provide: Uploads,
      inject: [ProcessRole, Foundation, IS_FUNDED],
      useFactory: async (role: ProcessRole, { runtime }: Foundation, isFunded: IsFunded) =>
        role.closeOnExit(await openUploads(role, isFunded, runtime.reportError)),
    },
    injectByName(
      PaidRequestHandler,
      {
        role: ProcessRole,
        payers: PayerFactory,
        recorder: RefusedRequestRecorder,
        idempotency: IdempotencyService,
        authenticator: Authenticator,
        freeModelLimits: FreeModelLimits,
        gate: PayPerRequestGate,
        catalogues: CatalogueService,
        bodies: BodyParser,
        foundation: Foundation,
      },
      ({ role, payers, recorder, foundation: { runtime }, ...dependencies }) =>
        role.closeOnExit(
          new PaidRequestHandler({
            ...dependencies,
            runtime,
            payers: recordRefusedRequests(payers, recorder),
            retirementNotices: new RetirementNotices(dependencies.catalogues),
          }),
        ),
    ),
  ],
  exports: [
    RateLimiter,
    HeavyWorkQueue,
    BodyParser,
    ContentDatabase,
    StorageQuota,
    PublicBaseUrl,
    ConnectionGuard,
    PayPerRequestGate,
    ReadModelReader,
    Authenticator,
    PaidRequestHandler,
    BillingModule,
    SecretsModule,
    StoresModule,
    StreamsModule,
  ],
})
export class EdgeModule {}

/** Returns a factory of payers. Those of accounts record requests that are rejected for lack of money. */
function recordRefusedRequests(
  payers: PayerFactory,
  recorder: RefusedRequestRecorder,
): PaidRequestDependencies['payers'] {
  return {
    forCaller: (caller) => recorder.wrapPayer(payers.forCaller(caller), caller),
    forChallenge: (challenge, isRetry) => payers.forChallenge(challenge, isRetry),
  };
}

function openConnections(role: ProcessRole): Promise<ConnectionGuard> {
  const { maxConnections: max, maxConnectionsPerAddress: maxPerAddress, trustedProxies } = role.settings;
  const reportError = (problem: string) => role.log.warn(problem);
  return role.closeOnExit(
    new ConnectionGuard({
      max,
      maxPerAddressGroup: maxPerAddress,
      toAddressGroup: createClientAddressResolver(trustedProxies),
      reportError,
    }),
  );
}

function openUploads(
  { settings }: ProcessRole,
  isFunded: IsFunded,
  reportError: Runtime['reportError'],
): Promise<Uploads> {
  const { uploadsDir = path.join(settings.dataDir, 'uploads'), uploadsMaxBytes: maxBytes } = settings;
  return Uploads.open({ directory: uploadsDir, maxBytes, isFunded, reportError });
}

async function openIdempotencyStore(
  role: ProcessRole,
  { runtime }: Foundation,
  { pool }: ContentDatabase,
  secrets: Secrets,
  files: FileStore,
) {
  const store = new PostgresIdempotencyStore(pool, secrets, files, getClaimLeaseMs(role.settings));
  const removeExpired = () =>
    store
      .removeExpired()
      .catch((error) => runtime.reportError('expired saved responses could not be removed; retrying', error));
  const timer = setInterval(() => void removeExpired(), SWEEP_INTERVAL_MS).unref();
  await role.closeOnExit({ close: () => clearInterval(timer) });
  return store;
}
