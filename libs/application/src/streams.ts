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
  type CommandOutcome,
  type CommandRunner,
  createCommandRunner,
  type EventStore,
  type Runtime,
  type SnapshotStore,
  StreamStateCache,
  type StreamStateReader,
} from '#kernel';

export abstract class Accounts implements CommandRunner<AccountCommand, AccountEvent, Account> {
  abstract run(
    accountId: string,
    command: AccountCommand,
    cause: Cause,
  ): Promise<CommandOutcome<AccountEvent, Account>>;
}

/** By the ids of challenges. */
export abstract class Challenges implements CommandRunner<ChallengeCommand, ChallengeEvent, Challenge> {
  abstract run(id: string, command: ChallengeCommand, cause: Cause): Promise<CommandOutcome<ChallengeEvent, Challenge>>;
}

export abstract class Topups implements CommandRunner<TopupCommand, TopupEvent> {
  abstract run(topupId: string, command: TopupCommand, cause: Cause): Promise<CommandOutcome<TopupEvent>>;
}

/** By the ids of accounts. */
export abstract class OpenInvoices implements CommandRunner<AllowInvoice, InvoiceAllowed> {
  abstract run(accountId: string, command: AllowInvoice, cause: Cause): Promise<CommandOutcome<InvoiceAllowed>>;
}

/** By the ids of accounts. */
export abstract class AutoTopups implements CommandRunner<AutoTopupCommand, AutoTopupEvent, AutoTopup> {
  abstract run(
    accountId: string,
    command: AutoTopupCommand,
    cause: Cause,
  ): Promise<CommandOutcome<AutoTopupEvent, AutoTopup>>;
}

/** By the ids of jobs. */
export abstract class Videos implements CommandRunner<VideoCommand, VideoEvent, Video> {
  abstract run(jobId: string, command: VideoCommand, cause: Cause): Promise<CommandOutcome<VideoEvent, Video>>;
}

export abstract class PriceLists
  implements CommandRunner<PublishPriceList, PriceListPublished>, StreamStateReader<PriceListPublished['data'] | null>
{
  abstract run(version: string, command: PublishPriceList, cause: Cause): Promise<CommandOutcome<PriceListPublished>>;
  /** The list of a version; null when none was published. */
  abstract read(version: string): Promise<PriceListPublished['data'] | null>;
}

export abstract class RefusedRequests implements CommandRunner<NoteRefusal, RequestRefused> {
  abstract run(id: string, command: NoteRefusal, cause: Cause): Promise<CommandOutcome<RequestRefused>>;
}

/** The write paths of one process. */
export abstract class Streams {
  abstract readonly accounts: Accounts & StreamStateReader<Account>;
  abstract readonly challenges: Challenges & StreamStateReader<Challenge>;
  abstract readonly topups: Topups & StreamStateReader<Topup>;
  abstract readonly openInvoices: OpenInvoices;
  abstract readonly autoTopups: AutoTopups & StreamStateReader<AutoTopup>;
  abstract readonly videos: Videos & StreamStateReader<Video>;
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
  warm = new StreamStateCache(),
): Streams {
  const shared = { store, runtime, warm };
  const kept = { store: snapshots, codec: accountCodec };
  const measured = { snapshots: kept, bytesOf: bytesOfAccount };
  return {
    accounts: createCommandRunner({ category: ACCOUNT, decider: accountDecider, ...shared, ...measured }),
    challenges: createCommandRunner({ category: CHALLENGE, decider: challengeDecider, ...shared }),
    topups: createCommandRunner({ category: TOPUP, decider: topupDecider, ...shared }),
    openInvoices: createCommandRunner({ category: INVOICES, decider: openInvoicesDecider, ...shared }),
    autoTopups: createCommandRunner({ category: AUTO_TOPUP, decider: autoTopupDecider, ...shared }),
    videos: createCommandRunner({ category: VIDEO, decider: videoDecider, ...shared }),
    priceLists: createCommandRunner({
      category: PRICE_LIST,
      decider: priceListDecider,
      ...shared,
      bytesOf: bytesOfPriceList,
    }),
    refusedRequests: createCommandRunner({ category: REFUSALS, decider: refusalsDecider, ...shared }),
  };
}
