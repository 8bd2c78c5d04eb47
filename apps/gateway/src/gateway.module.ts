import { type DynamicModule, Module, type Provider } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { CqrsModule } from '@nestjs/cqrs';
import {
  CompleteChatHandler,
  CreateEmbeddingsHandler,
  CreateKeyHandler,
  OpenAccountHandler,
  RequestInvoiceHandler,
  RevokeKeyHandler,
  UpdateKeyHandler,
} from '#application';
import { ErrorFilter } from './edge/errors.ts';
import { AccountsController } from './http/accounts.controller.ts';
import { ChatController } from './http/chat.controller.ts';
import { DocsController } from './http/docs.controller.ts';
import { EmbeddingsController } from './http/embeddings.controller.ts';
import { HealthController } from './http/health.controller.ts';
import { KeysController } from './http/keys.controller.ts';
import { ModelsController } from './http/models.controller.ts';
import { QueriesController } from './http/queries.controller.ts';
import { ResponsesController } from './http/responses.controller.ts';
import { TopupsController } from './http/topups.controller.ts';

/** The HTTP gateway. What reaches the world and the stores is given by whoever starts it. */
@Module({})
export class GatewayModule {
  static with(outside: Provider[], filter: ErrorFilter): DynamicModule {
    return {
      module: GatewayModule,
      imports: [CqrsModule.forRoot()],
      controllers: [
        AccountsController,
        ChatController,
        DocsController,
        EmbeddingsController,
        HealthController,
        KeysController,
        ModelsController,
        QueriesController,
        ResponsesController,
        TopupsController,
      ],
      providers: [
        { provide: APP_FILTER, useValue: filter },
        OpenAccountHandler,
        CreateKeyHandler,
        UpdateKeyHandler,
        RevokeKeyHandler,
        RequestInvoiceHandler,
        CompleteChatHandler,
        CreateEmbeddingsHandler,
        ...outside,
      ],
    };
  }
}
