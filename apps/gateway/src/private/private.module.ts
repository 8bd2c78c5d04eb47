import { Module } from '@nestjs/common';
import { Catalogues, Clock, Providers } from '#application';
import { CatalogueModule, ProvidersModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';
import { AttestationController } from './attestation.controller.ts';
import { Attestations } from './attestations.ts';

/** Private models: what is passed on between their clients and enclaves, unread. */
@Module({
  imports: [EdgeModule, CatalogueModule, ProvidersModule],
  controllers: [AttestationController],
  providers: [
    {
      provide: Attestations,
      inject: [Catalogues, Providers, Clock],
      useFactory: (catalogues: Catalogues, providers: Providers, clock: Clock) =>
        new Attestations(catalogues, providers, clock),
    },
  ],
})
export class PrivateModule {}
