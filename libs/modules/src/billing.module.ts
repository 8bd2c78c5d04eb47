import { Module } from '@nestjs/common';
import pg from 'pg';
import {
  BillingEngine,
  CallLimits,
  Clock,
  EndpointHealth,
  KeepAliveSettings,
  OutputLengthStats,
  PayerFactory,
  SampleRegistry,
  Streams,
} from '#application';
import { abuseLimitMigrations, PostgresSampleStore, sampleMigrations } from '#connectors';
import { Foundation, ProcessPresence, prepareTables } from '#foundation';
import { Readiness } from './readiness.ts';
import { ProcessRole } from './role.ts';
import { SampleExchange } from './sample-exchange.ts';
import { StoresModule } from './stores.module.ts';
import { StreamsModule } from './streams.module.ts';

/** Limits the size of the public health response. */
const MAX_LISTED_COSTS = 20;

/** The holds and charges of paid requests, and the health of the endpoints that serve them. */
@Module({
  imports: [StoresModule, StreamsModule],
  providers: [
    { provide: CallLimits, inject: [ProcessRole], useFactory: ({ settings }: ProcessRole): CallLimits => settings },
    {
      provide: KeepAliveSettings,
      inject: [ProcessRole],
      useFactory: ({ settings }: ProcessRole): KeepAliveSettings => settings,
    },
    { provide: SampleRegistry, inject: [ProcessRole, Foundation, pg.Pool], useFactory: openSamples },
    {
      provide: EndpointHealth,
      inject: [Clock, SampleRegistry, Foundation],
      useFactory: (clock: Clock, samples: SampleRegistry, { runtime }: Foundation) =>
        new EndpointHealth(clock, samples, runtime.reportError),
    },
    {
      provide: OutputLengthStats,
      inject: [SampleRegistry],
      useFactory: (samples: SampleRegistry) => new OutputLengthStats(samples),
    },
    { provide: ProcessPresence, inject: [ProcessRole, Foundation, Readiness], useFactory: openPresence },
    {
      provide: PayerFactory,
      inject: [Streams, Clock, ProcessPresence, Foundation],
      useFactory: (
        streams: Streams,
        clock: Clock,
        presence: ProcessPresence,
        { store: events, runtime, settings, log }: Foundation,
      ) =>
        new PayerFactory(
          streams,
          {
            clock,
            getProcessId: () => presence.getProcessId(),
            events,
            runtime,
            logRetry: ({ error, ...retry }) => log.debug({ ...retry, err: error }, 'retrying the change of a hold'),
            riskLimits: {
              lossPerHour: settings.absorbedPerHour,
              exposure: settings.minExposure,
              exposurePercent: BigInt(settings.exposurePercent),
            },
          },
          { maxWaiting: settings.maxWaitingRequests, maxWaitMs: settings.maxHoldWaitMs },
        ),
    },
    {
      provide: BillingEngine,
      inject: [EndpointHealth, CallLimits, Foundation, Readiness],
      useFactory: createBillingEngine,
    },
  ],
  exports: [CallLimits, KeepAliveSettings, EndpointHealth, OutputLengthStats, PayerFactory, BillingEngine],
})
export class BillingModule {}

function createBillingEngine(
  health: EndpointHealth,
  limits: CallLimits,
  { runtime }: Foundation,
  readiness: Readiness,
): BillingEngine {
  const billing = new BillingEngine(health, limits, runtime);
  readiness.addOptional('costs', () => {
    const different = billing.costMonitor.list();
    return { ok: different.length === 0, different: different.slice(0, MAX_LISTED_COSTS) };
  });
  return billing;
}

/** Opens the measurements that gateways share. A gateway whose database does not share them has its own. */
async function openSamples(role: ProcessRole, foundation: Foundation, pool: pg.Pool) {
  await prepareTables(foundation, [...abuseLimitMigrations, ...sampleMigrations]);
  const samples = new SampleRegistry();
  const exchange = await role.closeOnExit(
    new SampleExchange(samples, new PostgresSampleStore(pool), foundation.runtime.reportError),
  );
  await exchange.start();
  return samples;
}

/** The presence ends after the last request was served, because the sagas process ends the holds of dead processes. */
async function openPresence(
  role: ProcessRole,
  { databaseUrl, runtime, startDeadline }: Foundation,
  readiness: Readiness,
): Promise<ProcessPresence> {
  const presence = await role.closeOnExit(
    await ProcessPresence.start({ databaseUrl, role: role.name, reportError: runtime.reportError, startDeadline }),
  );
  readiness.addRequired('writable', () => ({ ok: presence.isDatabaseWritable }));
  return presence;
}
