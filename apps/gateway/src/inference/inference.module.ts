import { Module } from '@nestjs/common';
import {
  AnswerLengths,
  CallLimits,
  Catalogues,
  ChatQuotes,
  Chats,
  Clock,
  CompleteChatHandler,
  Conversations,
  CountMessageTokensHandler,
  CountResponseTokensHandler,
  CreateEmbeddingsHandler,
  CreateMessageHandler,
  CreateResponseHandler,
  EndpointHealth,
  ResponseReading,
  Secrets,
  StorageRoom,
  StoredResponses,
} from '#application';
import { Foundation } from '#foundation';
import { CatalogueModule, ProvidersModule, Role } from '#modules';
import { ContentDatabase } from '../edge/content.providers.ts';
import { EdgeModule } from '../edge/edge.module.ts';
import { MedianCosts } from '../edge/reading/median-costs.ts';
import { BooksReader } from '../edge/reading/read-model-reader.ts';
import { ChatController } from './chat.controller.ts';
import { CompletionsController } from './completions.controller.ts';
import { EmbeddingsController } from './embeddings.controller.ts';
import { MessagesController } from './messages.controller.ts';
import { ModelsController } from './models.controller.ts';
import { ResponsesController } from './responses.controller.ts';
import { openStoredResponses } from './stored-responses.ts';

/** Paid use of models, and which models there are. */
@Module({
  imports: [EdgeModule, CatalogueModule, ProvidersModule],
  controllers: [
    ChatController,
    CompletionsController,
    EmbeddingsController,
    MessagesController,
    ModelsController,
    ResponsesController,
  ],
  providers: [
    {
      provide: ChatQuotes,
      inject: [Catalogues, EndpointHealth, CallLimits],
      useFactory: (catalogues: Catalogues, health: EndpointHealth, limits: CallLimits) =>
        new ChatQuotes(catalogues, health, new AnswerLengths(), limits),
    },
    CompleteChatHandler,
    { provide: Chats, useExisting: CompleteChatHandler },
    CreateResponseHandler,
    CountResponseTokensHandler,
    CreateMessageHandler,
    CountMessageTokensHandler,
    CreateEmbeddingsHandler,
    {
      provide: ResponseReading,
      inject: [Catalogues, Conversations],
      useFactory: (catalogues: Catalogues, conversations: Conversations) =>
        new ResponseReading(catalogues, conversations),
    },
    { provide: MedianCosts, inject: [BooksReader], useFactory: (books: BooksReader) => new MedianCosts(books) },
    { provide: StoredResponses, inject: [Role, Foundation, ContentDatabase, Clock], useFactory: openStoredResponses },
    {
      provide: Conversations,
      inject: [StoredResponses, StorageRoom, Secrets, Clock, Foundation],
      useFactory: (
        ...[stored, room, secrets, clock, { runtime }]: [StoredResponses, StorageRoom, Secrets, Clock, Foundation]
      ) => new Conversations({ stored, room, secrets, clock, alarm: runtime.alarm }),
    },
  ],
})
export class InferenceModule {}
