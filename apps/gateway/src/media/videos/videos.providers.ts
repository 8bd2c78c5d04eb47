import type { Provider } from '@nestjs/common';
import pg from 'pg';
import {
  BillingEngine,
  CatalogueService,
  Clock,
  EndpointHealth,
  FileStore,
  ImageFiles,
  LinkSigner,
  MediaLinks,
  ProviderRegistry,
  RejectedVideoLimit,
  RequestVideoHandler,
  Secrets,
  Streams,
  VideoPollTrigger,
  VideoQuoter,
  VideoRequestStore,
  VideoWebhookReceiver,
  VideoWebhooks,
} from '#application';
import { videoWorkflow } from '#domain';
import { PostgresWorkflowSchedule } from '#eventstore';
import { Role } from '#modules';
import { RefusedInHistory } from './refused-video-limit.ts';
import { VideoSurroundings } from './videos.controller.ts';

export const videoProviders: readonly Provider[] = [
  {
    provide: VideoQuoter,
    inject: [CatalogueService, EndpointHealth],
    useFactory: (catalogues: CatalogueService, health: EndpointHealth) => new VideoQuoter(catalogues, health),
  },
  {
    provide: VideoRequestStore,
    inject: [FileStore, Secrets],
    useFactory: (files: FileStore, secrets: Secrets) => new VideoRequestStore(files, secrets),
  },
  {
    provide: RejectedVideoLimit,
    inject: [pg.Pool, Clock, Role],
    useFactory: (pool: pg.Pool, clock: Clock, { settings }: Role) =>
      new RefusedInHistory(pool, clock, settings.refusedPerHour),
  },
  {
    provide: VideoSurroundings,
    inject: [Streams, MediaLinks, LinkSigner, Secrets, Clock],
    useFactory: (
      ...[{ videos }, links, signer, secrets, clock]: [Streams, MediaLinks, LinkSigner, Secrets, Clock]
    ): VideoSurroundings => ({ videos, links, signer, secrets, clock }),
  },
  {
    provide: RequestVideoHandler,
    inject: [VideoQuoter, BillingEngine, ImageFiles, VideoRequestStore, RejectedVideoLimit, VideoSurroundings],
    useFactory: (
      ...[quotes, paying, images, requests, refused, { videos, secrets, clock }]: [
        VideoQuoter,
        BillingEngine,
        ImageFiles,
        VideoRequestStore,
        RejectedVideoLimit,
        VideoSurroundings,
      ]
    ) => new RequestVideoHandler(quotes, paying, { images, requests, refused, secrets, clock }, videos),
  },
  {
    provide: VideoWebhooks,
    inject: [Role, Secrets],
    useFactory: ({ settings }: Role, secrets: Secrets) => new VideoWebhooks(settings.publicBaseUrl, secrets),
  },
  { provide: VideoPollTrigger, inject: [pg.Pool, Clock], useFactory: videoHints },
  {
    provide: VideoWebhookReceiver,
    inject: [VideoWebhooks, VideoPollTrigger, ProviderRegistry, VideoSurroundings],
    useFactory: (
      hooks: VideoWebhooks,
      hints: VideoPollTrigger,
      providers: ProviderRegistry,
      { videos, clock }: VideoSurroundings,
    ) => new VideoWebhookReceiver({ hooks, hints, providers, videos, clock }),
  },
];

/** Sagas find what is due in a moment, whichever process they run in. */
function videoHints(pool: pg.Pool, clock: Clock): VideoPollTrigger {
  const due = new PostgresWorkflowSchedule(pool);
  return { wake: (jobId) => due.wake(videoWorkflow.name, [jobId], clock.now()) };
}
