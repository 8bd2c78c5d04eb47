import { Module } from '@nestjs/common';
import {
  BillingEngine,
  CallLimits,
  CatalogueService,
  ChatQuoter,
  ChatService,
  Clock,
  CompleteChatHandler,
  ConversationService,
  CountMessageTokensHandler,
  CountResponseTokensHandler,
  CreateEmbeddingsHandler,
  CreateMessageHandler,
  CreateResponseHandler,
  Downloader,
  EndpointHealth,
  HeavyWorkQueue,
  InferenceServices,
  OutputLengthStats,
  ProviderRegistry,
  ResponseRequestLoader,
  ResponseStore,
  Secrets,
  StorageQuota,
  ThreadLoader,
  TokenCounter,
} from '#application';
import { Foundation } from '#foundation';
import { CatalogueModule, FilesModule, injectByName, ProcessRole, ProvidersModule } from '#modules';
import { ContentDatabase } from '../edge/content.providers.ts';
import { EdgeModule } from '../edge/edge.module.ts';
import { MedianCosts } from '../edge/reading/median-costs.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { ChatController } from './chat.controller.ts';
import { CompletionsController } from './completions.controller.ts';
import { EmbeddingsController } from './embeddings.controller.ts';
import { MessagesController } from './messages.controller.ts';
import { ModelsController } from './models.controller.ts';
import { openResponseStore } from './open-response-store.ts';
import { ResponsesController } from './responses.controller.ts';

@Module({
  imports: [EdgeModule, CatalogueModule, FilesModule, ProvidersModule],
  controllers: [
    ChatController,
    CompletionsController,
    EmbeddingsController,
    MessagesController,
    ModelsController,
    ResponsesController,
  ],
  providers: [
    TokenCounter,
    {
      provide: InferenceServices,
      inject: [ProviderRegistry, TokenCounter, Downloader, Clock],
      useFactory: (providers: ProviderRegistry, tokenCounter: TokenCounter, downloads: Downloader, clock: Clock) =>
        new InferenceServices(providers, tokenCounter, downloads, clock),
    },
    injectByName(
      ChatQuoter,
      {
        catalogues: CatalogueService,
        health: EndpointHealth,
        lengths: OutputLengthStats,
        limits: CallLimits,
        billing: BillingEngine,
        tokenCounter: TokenCounter,
        clock: Clock,
      },
      (dependencies) => new ChatQuoter(dependencies),
    ),
    CompleteChatHandler,
    {
      provide: ChatService,
      inject: [CompleteChatHandler],
      // The command bus would warn of an alias, which it takes for a second handler of the command.
      useFactory: (handler: CompleteChatHandler): ChatService => ({ complete: handler.complete.bind(handler) }),
    },
    CreateResponseHandler,
    CountResponseTokensHandler,
    CreateMessageHandler,
    CountMessageTokensHandler,
    CreateEmbeddingsHandler,
    {
      provide: ResponseRequestLoader,
      inject: [CatalogueService, ConversationService],
      useFactory: (catalogues: CatalogueService, conversations: ConversationService) =>
        new ResponseRequestLoader(catalogues, conversations),
    },
    {
      provide: ThreadLoader,
      inject: [CatalogueService, ConversationService],
      useFactory: (catalogues: CatalogueService, conversations: ConversationService) =>
        new ThreadLoader(catalogues, conversations),
    },
    {
      provide: MedianCosts,
      inject: [ReadModelReader],
      useFactory: (readModels: ReadModelReader) => new MedianCosts(readModels),
    },
    {
      provide: ResponseStore,
      inject: [ProcessRole, Foundation, ContentDatabase, Clock],
      useFactory: openResponseStore,
    },
    {
      provide: ConversationService,
      inject: [ResponseStore, StorageQuota, Secrets, HeavyWorkQueue, Clock, Foundation],
      useFactory: (
        responseStore: ResponseStore,
        quota: StorageQuota,
        secrets: Secrets,
        heavyWork: HeavyWorkQueue,
        clock: Clock,
        { runtime }: Foundation,
      ) =>
        new ConversationService({
          responseStore,
          quota,
          secrets,
          heavyWork,
          clock,
          runtime,
        }),
    },
  ],
})
export class InferenceModule {}
