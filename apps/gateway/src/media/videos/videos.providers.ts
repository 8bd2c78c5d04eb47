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
import { ProcessRole } from '#modules';
import { ReadModelReader } from '../../edge/reading/read-model-reader.ts';
import { HistoryRefusedVideoLimit } from './refused-video-limit.ts';
import { VideosControllerDependencies } from './videos.controller.ts';

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
    inject: [pg.Pool, Clock, ProcessRole],
    useFactory: (pool: pg.Pool, clock: Clock, { settings }: ProcessRole) =>
      new HistoryRefusedVideoLimit(pool, clock, settings.refusedPerHour),
  },
  {
    provide: VideosControllerDependencies,
    inject: [Streams, FileStore, ReadModelReader, MediaLinks, LinkSigner, Secrets, Clock],
    useFactory: (
      ...[{ videos }, files, readModels, links, signer, secrets, clock]: [
        Streams,
        FileStore,
        ReadModelReader,
        MediaLinks,
        LinkSigner,
        Secrets,
        Clock,
      ]
    ): VideosControllerDependencies => ({ videos, files, readModels, links, signer, secrets, clock }),
  },
  {
    provide: RequestVideoHandler,
    inject: [
      VideoQuoter,
      BillingEngine,
      ImageFiles,
      VideoRequestStore,
      RejectedVideoLimit,
      VideosControllerDependencies,
    ],
    useFactory: (
      ...[quotes, billing, images, requests, refusedVideos, { videos, secrets, clock }]: [
        VideoQuoter,
        BillingEngine,
        ImageFiles,
        VideoRequestStore,
        RejectedVideoLimit,
        VideosControllerDependencies,
      ]
    ) =>
      new RequestVideoHandler(
        quotes,
        billing,
        { images, requests, rejectedVideoLimit: refusedVideos, secrets, clock },
        videos,
      ),
  },
  {
    provide: VideoWebhooks,
    inject: [ProcessRole, Secrets],
    useFactory: ({ settings }: ProcessRole, secrets: Secrets) => new VideoWebhooks(settings.publicBaseUrl, secrets),
  },
  { provide: VideoPollTrigger, inject: [pg.Pool, Clock], useFactory: createVideoPollTrigger },
  {
    provide: VideoWebhookReceiver,
    inject: [VideoWebhooks, VideoPollTrigger, ProviderRegistry, VideosControllerDependencies],
    useFactory: (
      webhooks: VideoWebhooks,
      pollTrigger: VideoPollTrigger,
      providers: ProviderRegistry,
      { videos, clock }: VideosControllerDependencies,
    ) => new VideoWebhookReceiver({ webhooks, pollTrigger, providers, videos, clock }),
  },
];

/** Returns a trigger that makes a video job due at once, in the schedule that the sagas process reads. */
function createVideoPollTrigger(pool: pg.Pool, clock: Clock): VideoPollTrigger {
  const schedule = new PostgresWorkflowSchedule(pool);
  return { wake: (jobId) => schedule.wake(videoWorkflow.name, [jobId], clock.now()) };
}
