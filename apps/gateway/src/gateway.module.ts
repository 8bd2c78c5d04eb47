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
import { AccountsController } from './accounts/accounts.controller.ts';
import { KeysController } from './accounts/keys.controller.ts';
import { QueriesController } from './accounts/queries.controller.ts';
import { ErrorFilter } from './edge/errors.ts';
import { HealthController } from './health/health.controller.ts';
import { ChatController } from './inference/chat.controller.ts';
import { EmbeddingsController } from './inference/embeddings.controller.ts';
import { ModelsController } from './inference/models.controller.ts';
import { ResponsesController } from './inference/responses.controller.ts';
import { DocsController } from './openapi/docs.controller.ts';
import { TopupsController } from './topups/topups.controller.ts';

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
