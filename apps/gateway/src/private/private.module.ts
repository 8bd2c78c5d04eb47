import { Module } from '@nestjs/common';
import {
  CatalogueService,
  Clock,
  EndpointHealth,
  OutputLengthStats,
  PrivateChatQuoter,
  ProviderRegistry,
  RelayPrivateChatHandler,
} from '#application';
import { CatalogueModule, ProvidersModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';
import { AttestationController } from './attestation.controller.ts';
import { AttestationCache } from './attestation-cache.ts';
import { PrivateChatsController } from './private-chats.controller.ts';

@Module({
  imports: [EdgeModule, CatalogueModule, ProvidersModule],
  controllers: [AttestationController, PrivateChatsController],
  providers: [
    {
      provide: PrivateChatQuoter,
      inject: [CatalogueService, OutputLengthStats, EndpointHealth],
      useFactory: (catalogues: CatalogueService, lengths: OutputLengthStats, health: EndpointHealth) =>
        new PrivateChatQuoter(catalogues, lengths, health),
    },
    RelayPrivateChatHandler,
    {
      provide: AttestationCache,
      inject: [CatalogueService, ProviderRegistry, Clock],
      useFactory: (catalogues: CatalogueService, providers: ProviderRegistry, clock: Clock) =>
        new AttestationCache(catalogues, providers, clock),
    },
  ],
})
export class PrivateModule {}
