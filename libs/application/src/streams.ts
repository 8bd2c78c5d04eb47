/** The write paths to which use cases send their commands. */

import {
  ACCOUNT,
  ACCOUNT_NAME,
  type AccountCommand,
  type AccountEvent,
  type AccountNamed,
  type AccountState,
  AUTO_TOPUP,
  type AutoTopupCommand,
  type AutoTopupEvent,
  type AutoTopupState,
  accountCodec,
  accountDecider,
  accountNameDecider,
  autoTopupDecider,
  CHALLENGE,
  type ChallengeCommand,
  type ChallengeEvent,
  type ChallengeState,
  challengeDecider,
  estimateAccountBytes,
  estimatePriceListBytes,
  INVOICES,
  type NameAccount,
  type OpenInvoiceCommand,
  type OpenInvoiceEvent,
  openInvoicesDecider,
  PAYMENT,
  type PaymentClaimCommand,
  type PaymentClaimEvent,
  type PaymentClaimState,
  PRICE_LIST,
  type PriceListPublished,
  type PublishPriceList,
  paymentClaimDecider,
  priceListDecider,
  REFUSED_REQUESTS,
  type RecordRefusedRequest,
  type RequestRefused,
  refusedRequestsDecider,
  TOPUP,
  type TopupCommand,
  type TopupEvent,
  type TopupState,
  topupDecider,
  VIDEO,
  type VideoCommand,
  type VideoEvent,
  type VideoState,
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

export abstract class Accounts implements CommandRunner<AccountCommand, AccountEvent, AccountState> {
  abstract run(
    accountId: string,
    command: AccountCommand,
    cause: Cause,
  ): Promise<CommandOutcome<AccountEvent, AccountState>>;
}

/** `id` is the id of the name's stream, see `toAccountNameStreamId`. */
export abstract class AccountNames
  implements CommandRunner<NameAccount, AccountNamed>, StreamStateReader<AccountNamed['data'] | null>
{
  abstract run(id: string, command: NameAccount, cause: Cause): Promise<CommandOutcome<AccountNamed>>;
  /** Returns which account has the name; null while it is free. */
  abstract read(id: string): Promise<AccountNamed['data'] | null>;
}

/** `id` is the id of the challenge's stream, see `toChallengeStreamId`. */
export abstract class Challenges implements CommandRunner<ChallengeCommand, ChallengeEvent, ChallengeState> {
  abstract run(
    id: string,
    command: ChallengeCommand,
    cause: Cause,
  ): Promise<CommandOutcome<ChallengeEvent, ChallengeState>>;
}

export abstract class Topups implements CommandRunner<TopupCommand, TopupEvent> {
  abstract run(topupId: string, command: TopupCommand, cause: Cause): Promise<CommandOutcome<TopupEvent>>;
}

/** `id` is the key of a payment, see `toPaymentKey`. */
export abstract class PaymentClaims
  implements CommandRunner<PaymentClaimCommand, PaymentClaimEvent, PaymentClaimState>
{
  abstract run(
    id: string,
    command: PaymentClaimCommand,
    cause: Cause,
  ): Promise<CommandOutcome<PaymentClaimEvent, PaymentClaimState>>;
}

export abstract class OpenInvoices implements CommandRunner<OpenInvoiceCommand, OpenInvoiceEvent> {
  abstract run(accountId: string, command: OpenInvoiceCommand, cause: Cause): Promise<CommandOutcome<OpenInvoiceEvent>>;
}

export abstract class AutoTopups implements CommandRunner<AutoTopupCommand, AutoTopupEvent, AutoTopupState> {
  abstract run(
    accountId: string,
    command: AutoTopupCommand,
    cause: Cause,
  ): Promise<CommandOutcome<AutoTopupEvent, AutoTopupState>>;
}

export abstract class Videos implements CommandRunner<VideoCommand, VideoEvent, VideoState> {
  abstract run(jobId: string, command: VideoCommand, cause: Cause): Promise<CommandOutcome<VideoEvent, VideoState>>;
}

export abstract class PriceLists
  implements CommandRunner<PublishPriceList, PriceListPublished>, StreamStateReader<PriceListPublished['data'] | null>
{
  abstract run(version: string, command: PublishPriceList, cause: Cause): Promise<CommandOutcome<PriceListPublished>>;
  /** Returns the price list of a version; null if it was never published. */
  abstract read(version: string): Promise<PriceListPublished['data'] | null>;
}

export abstract class RefusedRequests implements CommandRunner<RecordRefusedRequest, RequestRefused> {
  abstract run(id: string, command: RecordRefusedRequest, cause: Cause): Promise<CommandOutcome<RequestRefused>>;
}

/** The write paths of one process. */
export abstract class Streams {
  abstract readonly accounts: Accounts & StreamStateReader<AccountState>;
  abstract readonly accountNames: AccountNames;
  abstract readonly challenges: Challenges & StreamStateReader<ChallengeState>;
  abstract readonly topups: Topups & StreamStateReader<TopupState>;
  abstract readonly paymentClaims: PaymentClaims;
  abstract readonly openInvoices: OpenInvoices;
  abstract readonly autoTopups: AutoTopups & StreamStateReader<AutoTopupState>;
  abstract readonly videos: Videos & StreamStateReader<VideoState>;
  abstract readonly priceLists: PriceLists;
  abstract readonly refusedRequests: RefusedRequests;
}

export interface StreamsOptions {
  /** Limits the memory of the cached states. */
  readonly cache?: StreamStateCache;
  /** As in `StreamCommandQueueOptions`. */
  readonly eventsPerSnapshot?: number;
}

/** Creates the write paths of a process. Each process creates them once, because they own the cached stream states. */
export function createStreams(
  store: EventStore,
  snapshots: SnapshotStore,
  runtime: Runtime,
  { cache = new StreamStateCache(), ...snapshotOptions }: StreamsOptions = {},
): Streams {
  const shared = { store, runtime, cache, ...snapshotOptions };
  const accountSnapshots = { store: snapshots, codec: accountCodec };
  const measured = { snapshots: accountSnapshots, estimateBytes: estimateAccountBytes };
  return {
    accounts: createCommandRunner({ category: ACCOUNT, decider: accountDecider, ...shared, ...measured }),
    accountNames: createCommandRunner({ category: ACCOUNT_NAME, decider: accountNameDecider, ...shared }),
    challenges: createCommandRunner({ category: CHALLENGE, decider: challengeDecider, ...shared }),
    topups: createCommandRunner({ category: TOPUP, decider: topupDecider, ...shared }),
    paymentClaims: createCommandRunner({ category: PAYMENT, decider: paymentClaimDecider, ...shared }),
    openInvoices: createCommandRunner({ category: INVOICES, decider: openInvoicesDecider, ...shared }),
    autoTopups: createCommandRunner({ category: AUTO_TOPUP, decider: autoTopupDecider, ...shared }),
    videos: createCommandRunner({ category: VIDEO, decider: videoDecider, ...shared }),
    priceLists: createCommandRunner({
      category: PRICE_LIST,
      decider: priceListDecider,
      ...shared,
      estimateBytes: estimatePriceListBytes,
    }),
    refusedRequests: createCommandRunner({ category: REFUSED_REQUESTS, decider: refusedRequestsDecider, ...shared }),
  };
}
