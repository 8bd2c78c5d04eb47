import { Module } from '@nestjs/common';
import { LinkSigner, MediaLinks, SignedLinks } from '#application';
import { CatalogueModule, FilesModule, ProvidersModule, SecretsModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';
import { PublicBaseUrl } from '../edge/network/public-base-url.ts';
import { AudioController } from './audio/audio.controller.ts';
import { audioProviders } from './audio/audio.providers.ts';
import { FilesController } from './files.controller.ts';
import { ImagesController } from './images/images.controller.ts';
import { imageProviders } from './images/images.providers.ts';
import { VideoWebhooksController } from './videos/video-webhooks.controller.ts';
import { VideosController } from './videos/videos.controller.ts';
import { videoProviders } from './videos/videos.providers.ts';

@Module({
  imports: [EdgeModule, CatalogueModule, FilesModule, ProvidersModule, SecretsModule],
  controllers: [FilesController, ImagesController, AudioController, VideosController, VideoWebhooksController],
  providers: [
    ...imageProviders,
    ...audioProviders,
    ...videoProviders,
    {
      provide: MediaLinks,
      inject: [LinkSigner, PublicBaseUrl],
      useFactory: (signer: LinkSigner, address: PublicBaseUrl) => new SignedLinks(signer, () => address.url),
    },
  ],
})
export class MediaModule {}
