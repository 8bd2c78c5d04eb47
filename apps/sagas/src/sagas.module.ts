import { type BeforeApplicationShutdown, Module, type OnApplicationBootstrap } from '@nestjs/common';
import {
  AutoTopupInvoices,
  Clock,
  CreateTopupHandler,
  Downloads,
  ExchangeRates,
  FileStore,
  KeptRequests,
  OfferedPayments,
  Secrets,
  Streams,
  TopupPayments,
  VideoHooks,
  VideoResults,
} from '#application';
import { mediaTypeOf } from '#connectors';
import type { Running } from '#infra';
import {
  FilesModule,
  PaymentsModule,
  ProvidersModule,
  Role,
  SecretsModule,
  StoresModule,
  StreamsModule,
  WalletsModule,
} from '#modules';
import { AutoTopupSurroundings, SagaPorts, SagaStores, startSagas, TopupSurroundings, VideoMakers } from './sagas.ts';

/** The reaction side: facts become commands. */
@Module({
  imports: [StoresModule, FilesModule, PaymentsModule, ProvidersModule, SecretsModule, StreamsModule, WalletsModule],
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
    {
      provide: KeptRequests,
      inject: [FileStore, Secrets],
      useFactory: (files: FileStore, secrets: Secrets) => new KeptRequests(files, secrets),
    },
    {
      provide: VideoResults,
      inject: [FileStore, Downloads],
      useFactory: (files: FileStore, downloads: Downloads) => new VideoResults(files, downloads, mediaTypeOf),
    },
    {
      provide: VideoHooks,
      inject: [Role, Secrets],
      useFactory: ({ settings }: Role, secrets: Secrets) => new VideoHooks(settings.publicBaseUrl, secrets),
    },
    SagaStores,
    AutoTopupSurroundings,
    TopupSurroundings,
    VideoMakers,
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
