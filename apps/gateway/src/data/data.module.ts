import { Module } from '@nestjs/common';
import { RunDataLookupHandler } from '#application';
import { CatalogueModule, PaymentsModule, ProvidersModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';
import { DataController } from './data.controller.ts';

@Module({
  imports: [EdgeModule, CatalogueModule, PaymentsModule, ProvidersModule],
  controllers: [DataController],
  providers: [RunDataLookupHandler],
})
export class DataModule {}
