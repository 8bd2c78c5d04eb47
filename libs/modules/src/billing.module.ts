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

/** What is held and charged while something paid is served, and what is known of the endpoints that serve it. */
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
    { provide: ProcessPresence, inject: [ProcessRole, Foundation, Readiness], useFactory: showPresence },
    {
      provide: PayerFactory,
      inject: [Streams, Clock, ProcessPresence, ProcessRole],
      useFactory: (streams: Streams, clock: Clock, presence: ProcessPresence, { settings }: ProcessRole) =>
        new PayerFactory(streams, clock, () => presence.owner(), settings.absorbedPerHour),
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
export class PayingModule {}

/** Kept open until nothing is served any more: what a process holds is ended when it has died. */
async function showPresence(
  role: ProcessRole,
  { databaseUrl, runtime }: Foundation,
  readiness: Readiness,
): Promise<ProcessPresence> {
  const presence = await role.keep(
    await ProcessPresence.begin({ databaseUrl, role: role.name, alarm: runtime.reportError }),
  );
  readiness.require('writable', () => ({ ok: presence.isWritten }));
  return presence;
}
