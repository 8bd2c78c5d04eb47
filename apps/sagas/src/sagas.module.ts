import { type BeforeApplicationShutdown, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { Clock, ExchangeRates, OfferedPayments, TopupPayments } from '#application';
import type { Running } from '#infra';
import { PaymentsModule, StoresModule } from '#modules';
import { SagaPorts, SagaStores, startSagas } from './sagas.ts';

/** The reaction side: facts become commands. */
@Module({
  imports: [StoresModule, PaymentsModule],
  providers: [
    {
      provide: TopupPayments,
      inject: [ExchangeRates, OfferedPayments, Clock],
      useFactory: (...ports: ConstructorParameters<typeof TopupPayments>) => new TopupPayments(...ports),
    },
    SagaStores,
    SagaPorts,
  ],
})
export class SagasModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private running: Running | undefined;

  constructor(private readonly ports: SagaPorts) {}

  async onApplicationBootstrap(): Promise<void> {
    this.running = await startSagas(this.ports);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.running?.close();
  }
}
