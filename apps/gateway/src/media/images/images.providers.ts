import type { Provider } from '@nestjs/common';
import {
  Catalogues,
  Clock,
  Downloads,
  EndpointHealth,
  FileStore,
  ImageFiles,
  ImageMaker,
  ImageQuotes,
  MakeImagesHandler,
  MediaLinks,
  Paying,
  Providers,
  RefusedPrompts,
} from '#application';
import { pictureTypeOf } from '#connectors';
import { Role } from '#modules';

export const imageProviders: readonly Provider[] = [
  {
    provide: RefusedPrompts,
    inject: [Clock, Role],
    useFactory: (clock: Clock, { settings }: Role) => new RefusedPrompts(clock, settings.refusedPerHour),
  },
  {
    provide: ImageQuotes,
    inject: [Catalogues, EndpointHealth],
    useFactory: (catalogues: Catalogues, health: EndpointHealth) => new ImageQuotes(catalogues, health),
  },
  {
    provide: ImageFiles,
    inject: [Downloads, FileStore, MediaLinks, Clock],
    useFactory: (downloads: Downloads, store: FileStore, links: MediaLinks, clock: Clock) =>
      new ImageFiles({ downloads, store, links, clock, pictureTypeOf }),
  },
  {
    provide: MakeImagesHandler,
    inject: [ImageQuotes, Paying, Providers, ImageFiles, RefusedPrompts],
    useFactory: (
      ...[quotes, paying, providers, files, refused]: [ImageQuotes, Paying, Providers, ImageFiles, RefusedPrompts]
    ) => new MakeImagesHandler(quotes, paying, { maker: new ImageMaker(providers, files), files }, refused),
  },
];
