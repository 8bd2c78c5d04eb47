import { Module } from '@nestjs/common';
import { Accounts, CallLimits, Clock, Holds, PaidCalls, Pulses, RunningTasks, WatchedHolds } from '#application';
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
      provide: WatchedHolds,
      inject: [Accounts, Clock],
      useFactory: (accounts: Accounts, clock: Clock) => new WatchedHolds(accounts, clock),
    },
    { provide: Holds, useExisting: WatchedHolds },
    {
      provide: PaidCalls,
      inject: [Holds, Pulses],
      useFactory: (holds: Holds, pulses: Pulses) => new PaidCalls(holds, pulses),
    },
  ],
  exports: [RunningTasks, CallLimits, Pulses, WatchedHolds, Holds, PaidCalls],
})
export class PayingModule {}
