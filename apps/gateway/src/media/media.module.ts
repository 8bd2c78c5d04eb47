import { Module } from '@nestjs/common';
import { CatalogueModule, ProvidersModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';

/** Images, videos and sound, and the files that come of them. */
@Module({
  imports: [EdgeModule, CatalogueModule, ProvidersModule],
  controllers: [],
  providers: [],
})
export class MediaModule {}
