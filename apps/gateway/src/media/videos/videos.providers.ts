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
import { Foundation } from '#foundation';
import { injectByName, ProcessRole } from '#modules';
import { ReadModelReader } from '../../edge/reading/read-model-reader.ts';
import { HistoryRefusedVideoLimit } from './refused-video-limit.ts';
import { VideosControllerDependencies } from './videos.controller.ts';

export const videoProviders: readonly Provider[] = [
  {
    provide: VideoQuoter,
    inject: [CatalogueService, EndpointHealth, Foundation],
    useFactory: (catalogues: CatalogueService, health: EndpointHealth, { runtime }: Foundation) =>
      new VideoQuoter(catalogues, health, runtime),
  },
  {
    provide: VideoRequestStore,
    inject: [FileStore, Secrets, Foundation],
    useFactory: (files: FileStore, secrets: Secrets, { runtime }: Foundation) =>
      new VideoRequestStore(files, secrets, runtime),
  },
  {
    provide: RejectedVideoLimit,
    inject: [pg.Pool, Clock, ProcessRole],
    useFactory: (pool: pg.Pool, clock: Clock, { settings }: ProcessRole) =>
      new HistoryRefusedVideoLimit(pool, clock, settings.refusedPerHour),
  },
  injectByName(
    VideosControllerDependencies,
    {
      streams: Streams,
      files: FileStore,
      readModels: ReadModelReader,
      links: MediaLinks,
      signer: LinkSigner,
      secrets: Secrets,
      clock: Clock,
    },
    ({ streams, ...dependencies }) => ({ videos: streams.videos, ...dependencies }),
  ),
  injectByName(
    RequestVideoHandler,
    {
      quoter: VideoQuoter,
      billing: BillingEngine,
      images: ImageFiles,
      requests: VideoRequestStore,
      rejectedVideoLimit: RejectedVideoLimit,
      streams: Streams,
      secrets: Secrets,
      clock: Clock,
      foundation: Foundation,
    },
    ({ streams: { videos }, foundation: { runtime }, ...dependencies }) =>
      new RequestVideoHandler({ videos, runtime, ...dependencies }),
  ),
  {
    provide: VideoWebhooks,
    inject: [ProcessRole, Secrets],
    useFactory: ({ settings }: ProcessRole, secrets: Secrets) => new VideoWebhooks(settings.publicBaseUrl, secrets),
  },
  { provide: VideoPollTrigger, inject: [pg.Pool, Clock], useFactory: createVideoPollTrigger },
  {
    provide: VideoWebhookReceiver,
    inject: [VideoWebhooks, VideoPollTrigger, ProviderRegistry, Streams, Clock],
    useFactory: (
      webhooks: VideoWebhooks,
      pollTrigger: VideoPollTrigger,
      providers: ProviderRegistry,
      { videos }: Streams,
      clock: Clock,
    ) => new VideoWebhookReceiver({ webhooks, pollTrigger, providers, videos, clock }),
  },
];

/** Returns a trigger that makes a video job due at once, in the schedule that the sagas process reads. */
function createVideoPollTrigger(pool: pg.Pool, clock: Clock): VideoPollTrigger {
  const schedule = new PostgresWorkflowSchedule(pool);
  return { wake: (jobId) => schedule.wake(videoWorkflow.name, [jobId], clock.now()) };
}
