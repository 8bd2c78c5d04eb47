import { Module } from '@nestjs/common';
import { Catalogues, Clock, PriceLists, served } from '#application';
import { type Catalogue, readCatalogue, shippedCatalogue } from '#catalogue';
import { OpenedProviders } from '#connectors';
import { StartError } from '#infra';
import { CatalogueWatch } from './catalogue-watch.ts';
import { ProvidersModule } from './providers.module.ts';
import { Role } from './role.ts';
import { StoresModule } from './stores.module.ts';

/** What is sold and what it costs. Its prices are stated as a fact before anybody can charge by them. */
@Module({
  imports: [StoresModule, ProvidersModule],
  providers: [
    {
      provide: Catalogues,
      inject: [Role, OpenedProviders, PriceLists, Clock],
      useFactory: ({ settings }: Role, vendors: OpenedProviders, priceLists: PriceLists, clock: Clock) => {
        const first = catalogueFrom(settings.catalogueDir ?? shippedCatalogue(), vendors);
        return Catalogues.with(first, vendors, priceLists, clock);
      },
    },
    {
      provide: CatalogueWatch,
      inject: [Role, Catalogues],
      useFactory: (role: Role, catalogues: Catalogues) =>
        role.keep(new CatalogueWatch(role.settings.catalogueDir ?? shippedCatalogue(), catalogues, role.log)),
    },
  ],
  exports: [Catalogues],
})
export class CatalogueModule {}

/** @throws StartError that names the file, the model and the field, or what a vendor cannot do */
function catalogueFrom(directory: string, vendors: OpenedProviders): Catalogue {
  try {
    return served(readCatalogue(directory), vendors);
  } catch (error) {
    throw new StartError(`The catalogue ${(error as Error).message}.`);
  }
}
