import { Module } from '@nestjs/common';
import { OperatorProblems, ProviderRegistry } from '#application';
import { readProviders } from '#catalogue';
import { ConnectedProviders, createProviders } from '#connectors';
import { StartError } from '#foundation';
import { ProcessRole } from './role.ts';
import { StoresModule } from './stores.module.ts';

/** The providers of models, searches and data. */
@Module({
  imports: [StoresModule],
  providers: [
    { provide: ConnectedProviders, inject: [ProcessRole, OperatorProblems], useFactory: openProviders },
    { provide: ProviderRegistry, useExisting: ConnectedProviders },
  ],
  exports: [ConnectedProviders, ProviderRegistry],
})
export class ProvidersModule {}

/** @throws StartError if a setting names a provider that does not exist */
function openProviders(role: ProcessRole, problems: OperatorProblems): Promise<ConnectedProviders> {
  const { settings, log } = role;
  const providers = readProviders(settings.catalogueDir);
  const unknown = settings.zdrAgreements.find((name) => !providers.some(({ slug }) => slug === name));
  if (unknown !== undefined)
    throw new StartError(`ZDR_AGREEMENTS names the provider "${unknown}", which does not exist.`);
  const unconfigured = providers.flatMap(({ slug }) => (settings.providers.has(slug) ? [] : [slug]));
  if (unconfigured.length > 0) log.info({ providers: unconfigured }, 'providers without settings are not used');
  return role.closeOnExit(createProviders(providers, settings, problems));
}
