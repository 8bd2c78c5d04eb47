import { Module } from '@nestjs/common';
import pg from 'pg';
import {
  Chats,
  Clock,
  CompleteChatHandler,
  Conversations,
  CreateEmbeddingsHandler,
  CreateResponseHandler,
  Secrets,
} from '#application';
import { Foundation } from '#infra';
import { CatalogueModule, ProvidersModule, Role } from '#modules';
import { BooksReader } from '../edge/books-reader.ts';
import { EdgeModule } from '../edge/edge.module.ts';
import { MedianCosts } from '../edge/median-costs.ts';
import { ChatController } from './chat.controller.ts';
import { EmbeddingsController } from './embeddings.controller.ts';
import { ModelsController } from './models.controller.ts';
import { ResponsesController } from './responses.controller.ts';
import { openConversations } from './stored-responses.ts';

/** Paid use of models, and which models there are. */
@Module({
  imports: [EdgeModule, CatalogueModule, ProvidersModule],
  controllers: [ChatController, EmbeddingsController, ModelsController, ResponsesController],
  providers: [
    CompleteChatHandler,
    { provide: Chats, useExisting: CompleteChatHandler },
    CreateResponseHandler,
    CreateEmbeddingsHandler,
    { provide: MedianCosts, inject: [BooksReader], useFactory: (books: BooksReader) => new MedianCosts(books) },
    { provide: Conversations, inject: [Role, Foundation, pg.Pool, Secrets, Clock], useFactory: openConversations },
  ],
})
export class InferenceModule {}
