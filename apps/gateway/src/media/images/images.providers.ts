import type { Provider } from '@nestjs/common';
import {
  BillingEngine,
  CatalogueService,
  Clock,
  Downloader,
  EndpointHealth,
  FileStore,
  GenerateImagesHandler,
  ImageFiles,
  ImageGenerator,
  ImageQuoter,
  MediaLinks,
  ProviderRegistry,
  RejectedPrompts,
} from '#application';
import { detectImageType } from '#connectors';
import { Foundation } from '#foundation';
import { ProcessRole } from '#modules';

export const imageProviders: readonly Provider[] = [
  {
    provide: RejectedPrompts,
    inject: [Clock, ProcessRole],
    useFactory: (clock: Clock, { settings }: ProcessRole) => new RejectedPrompts(clock, settings.refusedPerHour),
  },
  {
    provide: ImageQuoter,
    inject: [CatalogueService, EndpointHealth, Foundation],
    useFactory: (catalogues: CatalogueService, health: EndpointHealth, { runtime }: Foundation) =>
      new ImageQuoter(catalogues, health, runtime),
  },
  {
    provide: ImageFiles,
    inject: [Downloader, FileStore, MediaLinks, Clock, Foundation],
    useFactory: (
      ...[downloads, store, links, clock, { runtime }]: [Downloader, FileStore, MediaLinks, Clock, Foundation]
    ) => new ImageFiles({ downloads, store, links, clock, detectImageType, runtime }),
  },
  {
    provide: GenerateImagesHandler,
    inject: [ImageQuoter, BillingEngine, ProviderRegistry, ImageFiles, RejectedPrompts],
    useFactory: (
      quoter: ImageQuoter,
      billing: BillingEngine,
      providers: ProviderRegistry,
      files: ImageFiles,
      rejectedPromptLimit: RejectedPrompts,
    ) => {
      const generator = new ImageGenerator(providers, files);
      return new GenerateImagesHandler({ quoter, billing, generator, files, rejectedPromptLimit });
    },
  },
];
