import { Module } from '@nestjs/common';
import { Catalogues, Clock, PriceLists } from '#application';
import { type Catalogue, readCatalogue, shippedCatalogue } from '#catalogue';
import { StartError } from '#infra';
import { CatalogueWatch } from './catalogue-watch.ts';
import { Role } from './role.ts';
import { StoresModule } from './stores.module.ts';

/** What is sold and what it costs. Its prices are stated as a fact before anybody can charge by them. */
@Module({
  imports: [StoresModule],
  providers: [
    {
      provide: Catalogues,
      inject: [Role, PriceLists, Clock],
      useFactory: ({ settings }: Role, priceLists: PriceLists, clock: Clock) =>
        Catalogues.with(catalogueFrom(settings.catalogueDir ?? shippedCatalogue()), priceLists, clock),
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

/** @throws StartError that names the file, the model and the field */
function catalogueFrom(directory: string): Catalogue {
  try {
    return readCatalogue(directory);
  } catch (error) {
    throw new StartError(`The catalogue ${(error as Error).message}.`);
  }
}
