import type { Provider } from '@nestjs/common';
import pg from 'pg';
import {
  Catalogues,
  Clock,
  EndpointHealth,
  FileStore,
  ImageFiles,
  KeptRequests,
  LinkSigner,
  MediaLinks,
  Paying,
  Providers,
  RefusedVideos,
  RequestVideoHandler,
  Secrets,
  Streams,
  VideoHints,
  VideoHookReceiver,
  VideoHooks,
  VideoQuotes,
} from '#application';
import { videoWorkflow } from '#domain';
import { PostgresDueTable } from '#eventstore';
import { Role } from '#modules';
import { RefusedInHistory } from './refused-video-limit.ts';
import { VideoSurroundings } from './videos.controller.ts';

export const videoProviders: readonly Provider[] = [
  {
    provide: VideoQuotes,
    inject: [Catalogues, EndpointHealth],
    useFactory: (catalogues: Catalogues, health: EndpointHealth) => new VideoQuotes(catalogues, health),
  },
  {
    provide: KeptRequests,
    inject: [FileStore, Secrets],
    useFactory: (files: FileStore, secrets: Secrets) => new KeptRequests(files, secrets),
  },
  {
    provide: RefusedVideos,
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
    inject: [VideoQuotes, Paying, ImageFiles, KeptRequests, RefusedVideos, VideoSurroundings],
    useFactory: (
      ...[quotes, paying, images, requests, refused, { videos, secrets, clock }]: [
        VideoQuotes,
        Paying,
        ImageFiles,
        KeptRequests,
        RefusedVideos,
        VideoSurroundings,
      ]
    ) => new RequestVideoHandler(quotes, paying, { images, requests, refused, secrets, clock }, videos),
  },
  {
    provide: VideoHooks,
    inject: [Role, Secrets],
    useFactory: ({ settings }: Role, secrets: Secrets) => new VideoHooks(settings.publicBaseUrl, secrets),
  },
  { provide: VideoHints, inject: [pg.Pool, Clock], useFactory: videoHints },
  {
    provide: VideoHookReceiver,
    inject: [VideoHooks, VideoHints, Providers, VideoSurroundings],
    useFactory: (hooks: VideoHooks, hints: VideoHints, providers: Providers, { videos, clock }: VideoSurroundings) =>
      new VideoHookReceiver({ hooks, hints, providers, videos, clock }),
  },
];

/** Sagas find what is due in a moment, whichever process they run in. */
function videoHints(pool: pg.Pool, clock: Clock): VideoHints {
  const due = new PostgresDueTable(pool);
  return { wake: (jobId) => due.wake(videoWorkflow.name, [jobId], clock.now()) };
}
