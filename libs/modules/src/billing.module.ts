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
import { Foundation, Presence } from '#foundation';
import { Readiness } from './readiness.ts';
import { Role } from './role.ts';
import { StoresModule } from './stores.module.ts';
import { StreamsModule } from './streams.module.ts';

/** What is held and charged while something paid is served, and what is known of the endpoints that serve it. */
@Module({
  imports: [StoresModule, StreamsModule],
  providers: [
    { provide: CallLimits, inject: [Role], useFactory: ({ settings }: Role): CallLimits => settings },
    { provide: KeepAliveSettings, inject: [Role], useFactory: ({ settings }: Role): KeepAliveSettings => settings },
    { provide: EndpointHealth, inject: [Clock], useFactory: (clock: Clock) => new EndpointHealth(clock) },
    { provide: Presence, inject: [Role, Foundation, Readiness], useFactory: showPresence },
    {
      provide: PayerFactory,
      inject: [Streams, Clock, Presence, Role],
      useFactory: (streams: Streams, clock: Clock, presence: Presence, { settings }: Role) =>
        new PayerFactory(streams, clock, () => presence.owner(), settings.absorbedPerHour),
    },
    {
      provide: BillingEngine,
      inject: [EndpointHealth, CallLimits, Foundation],
      useFactory: (health: EndpointHealth, limits: CallLimits, { runtime }: Foundation) =>
        new BillingEngine(health, limits, runtime.alarm),
    },
  ],
  exports: [CallLimits, KeepAliveSettings, EndpointHealth, PayerFactory, BillingEngine],
})
export class PayingModule {}

/** Kept open until nothing is served any more: what a process holds is ended when it has died. */
async function showPresence(role: Role, { databaseUrl, runtime }: Foundation, readiness: Readiness): Promise<Presence> {
  const presence = await role.keep(await Presence.begin({ databaseUrl, role: role.name, alarm: runtime.alarm }));
  readiness.require('writable', () => ({ ok: presence.isWritten }));
  return presence;
}
