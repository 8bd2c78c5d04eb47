/** The write paths that use cases send their commands to. */

import {
  ACCOUNT,
  type Account,
  type AccountCommand,
  type AccountEvent,
  type AllowInvoice,
  AUTO_TOPUP,
  type AutoTopup,
  type AutoTopupCommand,
  type AutoTopupEvent,
  accountCodec,
  accountDecider,
  autoTopupDecider,
  bytesOfAccount,
  bytesOfPriceList,
  CHALLENGE,
  type Challenge,
  type ChallengeCommand,
  type ChallengeEvent,
  challengeDecider,
  INVOICES,
  type InvoiceAllowed,
  type NoteRefusal,
  openInvoicesDecider,
  PRICE_LIST,
  type PriceListPublished,
  type PublishPriceList,
  priceListDecider,
  REFUSALS,
  type RequestRefused,
  refusalsDecider,
  TOPUP,
  type Topup,
  type TopupCommand,
  type TopupEvent,
  topupDecider,
  VIDEO,
  type Video,
  type VideoCommand,
  type VideoEvent,
  videoDecider,
} from '#domain';
import {
  type Cause,
  createRunner,
  type EventStore,
  type Outcome,
  type Runner,
  type Runtime,
  type SnapshotStore,
  type StateReader,
  WarmStreams,
} from '#kernel';

export abstract class Accounts implements Runner<AccountCommand, AccountEvent, Account> {
  abstract run(accountId: string, command: AccountCommand, cause: Cause): Promise<Outcome<AccountEvent, Account>>;
}

/** By the ids of challenges. */
export abstract class Challenges implements Runner<ChallengeCommand, ChallengeEvent, Challenge> {
  abstract run(id: string, command: ChallengeCommand, cause: Cause): Promise<Outcome<ChallengeEvent, Challenge>>;
}

export abstract class Topups implements Runner<TopupCommand, TopupEvent> {
  abstract run(topupId: string, command: TopupCommand, cause: Cause): Promise<Outcome<TopupEvent>>;
}

/** By the ids of accounts. */
export abstract class OpenInvoices implements Runner<AllowInvoice, InvoiceAllowed> {
  abstract run(accountId: string, command: AllowInvoice, cause: Cause): Promise<Outcome<InvoiceAllowed>>;
}

/** By the ids of accounts. */
export abstract class AutoTopups implements Runner<AutoTopupCommand, AutoTopupEvent, AutoTopup> {
  abstract run(accountId: string, command: AutoTopupCommand, cause: Cause): Promise<Outcome<AutoTopupEvent, AutoTopup>>;
}

/** By the ids of jobs. */
export abstract class Videos implements Runner<VideoCommand, VideoEvent, Video> {
  abstract run(jobId: string, command: VideoCommand, cause: Cause): Promise<Outcome<VideoEvent, Video>>;
}

export abstract class PriceLists
  implements Runner<PublishPriceList, PriceListPublished>, StateReader<PriceListPublished['data'] | null>
{
  abstract run(version: string, command: PublishPriceList, cause: Cause): Promise<Outcome<PriceListPublished>>;
  /** The list of a version; null when none was published. */
  abstract read(version: string): Promise<PriceListPublished['data'] | null>;
}

export abstract class RefusedRequests implements Runner<NoteRefusal, RequestRefused> {
  abstract run(id: string, command: NoteRefusal, cause: Cause): Promise<Outcome<RequestRefused>>;
}

/** The write paths of one process. */
export abstract class Streams {
  abstract readonly accounts: Accounts & StateReader<Account>;
  abstract readonly challenges: Challenges & StateReader<Challenge>;
  abstract readonly topups: Topups & StateReader<Topup>;
  abstract readonly openInvoices: OpenInvoices;
  abstract readonly autoTopups: AutoTopups & StateReader<AutoTopup>;
  abstract readonly videos: Videos & StateReader<Video>;
  abstract readonly priceLists: PriceLists;
  abstract readonly refusedRequests: RefusedRequests;
}

/**
 * Opens the write paths of one process. There is one of each in a process: it owns the warm states.
 * @param warm how many of them there may be
 */
export function openStreams(
  store: EventStore,
  snapshots: SnapshotStore,
  runtime: Runtime,
  warm = new WarmStreams(),
): Streams {
  const shared = { store, runtime, warm };
  const kept = { store: snapshots, codec: accountCodec };
  const measured = { snapshots: kept, bytesOf: bytesOfAccount };
  return {
    accounts: createRunner({ category: ACCOUNT, decider: accountDecider, ...shared, ...measured }),
    challenges: createRunner({ category: CHALLENGE, decider: challengeDecider, ...shared }),
    topups: createRunner({ category: TOPUP, decider: topupDecider, ...shared }),
    openInvoices: createRunner({ category: INVOICES, decider: openInvoicesDecider, ...shared }),
    autoTopups: createRunner({ category: AUTO_TOPUP, decider: autoTopupDecider, ...shared }),
    videos: createRunner({ category: VIDEO, decider: videoDecider, ...shared }),
    priceLists: createRunner({ category: PRICE_LIST, decider: priceListDecider, ...shared, bytesOf: bytesOfPriceList }),
    refusedRequests: createRunner({ category: REFUSALS, decider: refusalsDecider, ...shared }),
  };
}
