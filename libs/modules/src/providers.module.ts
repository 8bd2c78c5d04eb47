import { Module } from '@nestjs/common';
import { ProviderRegistry } from '#application';
import { readProviders } from '#catalogue';
import { ConnectedProviders, createProviders } from '#connectors';
import { ProcessRole } from './role.ts';

/** The providers of models, searches and data. */
@Module({
  providers: [
    { provide: ConnectedProviders, inject: [ProcessRole], useFactory: openProviders },
    { provide: ProviderRegistry, useExisting: ConnectedProviders },
  ],
  exports: [ConnectedProviders, ProviderRegistry],
})
export class ProvidersModule {}

function openProviders(role: ProcessRole): Promise<ConnectedProviders> {
  const { settings, log } = role;
  const providers = readProviders(settings.catalogueDir);
  const unconfigured = providers.flatMap(({ slug }) => (settings.providers.has(slug) ? [] : [slug]));
  if (unconfigured.length > 0) log.info({ providers: unconfigured }, 'providers without settings are not used');
  return role.closeOnExit(createProviders(providers, settings));
}
