import { type BeforeApplicationShutdown, Module, type OnApplicationBootstrap } from '@nestjs/common';
import {
  AutoTopupInvoices,
  Clock,
  CreateTopupHandler,
  ExchangeRates,
  FileStore,
  OfferedPayments,
  Streams,
  TopupPayments,
} from '#application';
import type { Running } from '#infra';
import { FilesModule, PaymentsModule, SecretsModule, StoresModule, WalletsModule } from '#modules';
import { AutoTopupSurroundings, SagaPorts, SagaStores, startSagas } from './sagas.ts';

/** The reaction side: facts become commands. */
@Module({
  imports: [StoresModule, FilesModule, PaymentsModule, SecretsModule, WalletsModule],
  providers: [
    {
      provide: TopupPayments,
      inject: [ExchangeRates, OfferedPayments, Clock],
      useFactory: (...ports: ConstructorParameters<typeof TopupPayments>) => new TopupPayments(...ports),
    },
    {
      provide: AutoTopupInvoices,
      inject: [Streams, OfferedPayments, ExchangeRates, Clock],
      useFactory: (...ports: ConstructorParameters<typeof CreateTopupHandler>) =>
        new AutoTopupInvoices(ports[0].topups, new CreateTopupHandler(...ports)),
    },
    SagaStores,
    AutoTopupSurroundings,
    SagaPorts,
  ],
})
export class SagasModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private running: Running | undefined;

  constructor(
    private readonly ports: SagaPorts,
    private readonly files: FileStore,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    this.running = await startSagas(this.ports, this.files);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.running?.close();
  }
}
