import { Module } from '@nestjs/common';
import { Accounts, CallLimits, ClientPatience, Clock, EndpointHealth, Payers, Paying } from '#application';
import { Foundation } from '#infra';
import { Role } from './role.ts';
import { StoresModule } from './stores.module.ts';

/** What is held and charged while something paid is served, and what is known of the endpoints that serve it. */
@Module({
  imports: [StoresModule],
  providers: [
    { provide: CallLimits, inject: [Role], useFactory: ({ settings }: Role): CallLimits => settings },
    { provide: ClientPatience, inject: [Role], useFactory: ({ settings }: Role): ClientPatience => settings },
    { provide: EndpointHealth, inject: [Clock], useFactory: (clock: Clock) => new EndpointHealth(clock) },
    {
      provide: Payers,
      inject: [Accounts, Clock],
      useFactory: (accounts: Accounts, clock: Clock) => new Payers(accounts, clock),
    },
    {
      provide: Paying,
      inject: [EndpointHealth, CallLimits, Foundation],
      useFactory: (health: EndpointHealth, limits: CallLimits, { runtime }: Foundation) =>
        new Paying(health, limits, runtime.alarm),
    },
  ],
  exports: [CallLimits, ClientPatience, EndpointHealth, Payers, Paying],
})
export class PayingModule {}
