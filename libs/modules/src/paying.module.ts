import { Module } from '@nestjs/common';
import { Accounts, CallLimits, Clock, Payers, Paying, Pulses, RunningTasks } from '#application';
import { Foundation } from '#infra';
import { Role } from './role.ts';
import { StoresModule } from './stores.module.ts';

/** What is held and charged while something paid is served, and what is known of the endpoints that serve it. */
@Module({
  imports: [StoresModule],
  providers: [
    RunningTasks,
    { provide: CallLimits, inject: [Role], useFactory: ({ settings }: Role): CallLimits => settings },
    { provide: Pulses, inject: [Clock], useFactory: (clock: Clock) => new Pulses(clock) },
    {
      provide: Payers,
      inject: [Accounts, Clock],
      useFactory: (accounts: Accounts, clock: Clock) => new Payers(accounts, clock),
    },
    {
      provide: Paying,
      inject: [Pulses, RunningTasks, CallLimits, Foundation],
      useFactory: (pulses: Pulses, running: RunningTasks, limits: CallLimits, { runtime }: Foundation) =>
        new Paying(pulses, running, limits, runtime.alarm),
    },
  ],
  exports: [RunningTasks, CallLimits, Pulses, Payers, Paying],
})
export class PayingModule {}
