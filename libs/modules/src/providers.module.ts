import { Module } from '@nestjs/common';
import { ProviderRegistry } from '#application';
import { readProviders } from '#catalogue';
import { ConnectedProviders, createProviders } from '#connectors';
import { ProcessRole } from './role.ts';

/** The vendors that models and searches are bought from. */
@Module({
  providers: [
    { provide: ConnectedProviders, inject: [ProcessRole], useFactory: open },
    { provide: ProviderRegistry, useExisting: ConnectedProviders },
  ],
  exports: [ConnectedProviders, ProviderRegistry],
})
export class ProvidersModule {}

function open(role: ProcessRole): Promise<ConnectedProviders> {
  const { settings, log } = role;
  const vendors = readProviders(settings.catalogueDir);
  const left = vendors.flatMap(({ slug }) => (settings.providers.has(slug) ? [] : [slug]));
  if (left.length > 0) log.info({ vendors: left }, 'vendors without a credential are left out');
  return role.keep(createProviders(vendors, settings));
}
