import { Module } from '@nestjs/common';
import {
  BillingEngine,
  CallLimits,
  Clock,
  EndpointHealth,
  KeepAliveSettings,
  PayerFactory,
  Streams,
} from '#application';
import { Foundation, ProcessPresence } from '#foundation';
import { Readiness } from './readiness.ts';
import { ProcessRole } from './role.ts';
import { StoresModule } from './stores.module.ts';
import { StreamsModule } from './streams.module.ts';

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
    { provide: EndpointHealth, inject: [Clock], useFactory: (clock: Clock) => new EndpointHealth(clock) },
    { provide: ProcessPresence, inject: [ProcessRole, Foundation, Readiness], useFactory: openPresence },
    {
      provide: PayerFactory,
      inject: [Streams, Clock, ProcessPresence, Foundation],
      useFactory: (
        streams: Streams,
        clock: Clock,
        presence: ProcessPresence,
        { store: events, runtime: { reportError }, settings }: Foundation,
      ) =>
        new PayerFactory(streams, {
          clock,
          getProcessId: () => presence.getProcessId(),
          events,
          reportError,
          lossLimit: settings.absorbedPerHour,
        }),
    },
    {
      provide: BillingEngine,
      inject: [EndpointHealth, CallLimits, Foundation],
      useFactory: (health: EndpointHealth, limits: CallLimits, { runtime }: Foundation) =>
        new BillingEngine(health, limits, runtime.reportError),
    },
  ],
  exports: [CallLimits, KeepAliveSettings, EndpointHealth, PayerFactory, BillingEngine],
})
export class BillingModule {}

/** The presence ends after the last request was served, because the sagas process ends the holds of dead processes. */
async function openPresence(
  role: ProcessRole,
  { databaseUrl, runtime }: Foundation,
  readiness: Readiness,
): Promise<ProcessPresence> {
  const presence = await role.closeOnExit(
    await ProcessPresence.start({ databaseUrl, role: role.name, reportError: runtime.reportError }),
  );
  readiness.addRequired('writable', () => ({ ok: presence.isDatabaseWritable }));
  return presence;
}
