import { Module } from '@nestjs/common';
import { assertProvidersSupport, CatalogueService, Clock, OperatorProblems, PriceLists } from '#application';
import { type Catalogue, getShippedCatalogueDir, readCatalogue } from '#catalogue';
import { ConnectedProviders } from '#connectors';
import { Foundation, StartError } from '#foundation';
import { type CatalogueSource, CatalogueWatch } from './catalogue-watch.ts';
import { KeyChecks } from './key-checks.ts';
import { ProvidersModule } from './providers.module.ts';
import { ProcessRole } from './role.ts';
import { StoresModule } from './stores.module.ts';
import { StreamsModule } from './streams.module.ts';

/** Models and prices. A price list is published as an event before any request is charged at its prices. */
@Module({
  imports: [StoresModule, StreamsModule, ProvidersModule],
  providers: [
    {
      provide: CatalogueService,
      inject: [ProcessRole, Foundation, ConnectedProviders, PriceLists, Clock],
      useFactory: openCatalogues,
    },
    {
      provide: CatalogueWatch,
      inject: [ProcessRole, ConnectedProviders, CatalogueService],
      useFactory: (role: ProcessRole, providers: ConnectedProviders, catalogues: CatalogueService) =>
        role.closeOnExit(new CatalogueWatch(createSource(role, providers), catalogues, role.log)),
    },
    {
      provide: KeyChecks,
      inject: [ProcessRole, ConnectedProviders, CatalogueService, OperatorProblems],
      useFactory: startKeyChecks,
    },
  ],
  exports: [CatalogueService],
})
export class CatalogueModule {}

function openCatalogues(
  role: ProcessRole,
  foundation: Foundation,
  providers: ConnectedProviders,
  priceLists: PriceLists,
  clock: Clock,
): Promise<CatalogueService> {
  const { catalogueDay } = role.settings;
  const fixedMs = catalogueDay === undefined ? undefined : Date.parse(catalogueDay);
  const calendar = fixedMs === undefined ? clock : { nowMs: () => fixedMs };
  const catalogue = readInitialCatalogue(createSource(role, providers));
  return foundation.startDeadline.waitFor('the price list in the event store', () =>
    CatalogueService.create(catalogue, { providers, priceLists, clock, calendar }),
  );
}

/** A catalogue is also invalid if it requires capabilities that its providers do not have. */
function createSource({ settings }: ProcessRole, providers: ConnectedProviders): CatalogueSource {
  const directory = settings.catalogueDir ?? getShippedCatalogueDir();
  return { directory, read: () => assertProvidersSupport(readCatalogue(directory), providers) };
}

/** @throws StartError if the catalogue is invalid; it names the file and the field */
function readInitialCatalogue(source: CatalogueSource): Catalogue {
  try {
    return source.read();
  } catch (error) {
    throw new StartError(`The catalogue ${(error as Error).message}.`);
  }
}

/** A rejection names the models that cannot be served, so the checks start after the catalogue is available. */
async function startKeyChecks(
  role: ProcessRole,
  providers: ConnectedProviders,
  catalogues: CatalogueService,
  problems: OperatorProblems,
): Promise<KeyChecks> {
  problems.useCatalogue(catalogues);
  const checks = await role.closeOnExit(new KeyChecks(providers, role.log));
  role.afterSecretChange(() => checks.start());
  checks.start();
  return checks;
}
