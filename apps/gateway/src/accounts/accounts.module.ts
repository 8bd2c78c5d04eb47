import { Module } from '@nestjs/common';
import { CreateKeyHandler, OpenAccountHandler, RevokeKeyHandler, UpdateKeyHandler } from '#application';
import { CatalogueModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';
import { AccountsController } from './accounts.controller.ts';
import { historyReadProviders } from './history-read-pool.ts';
import { KeysController } from './keys.controller.ts';
import { QueriesController } from './queries.controller.ts';

@Module({
  imports: [EdgeModule, CatalogueModule],
  controllers: [AccountsController, KeysController, QueriesController],
  providers: [historyReadProviders, OpenAccountHandler, CreateKeyHandler, UpdateKeyHandler, RevokeKeyHandler],
})
export class AccountsModule {}
