/**
 * Upcasters translate events of older versions to the current version. To change the data of an event:
 * 1. Change its type in the `events.ts` that declares it.
 * 2. Append an upcaster from the previous version to the chain of its type here.
 * 3. Add a golden file `<type>.v<n>.json` for the new version to `libs/domain/src/golden`. In the files of the older
 *    versions, update the data after upcasting (`today`).
 * 4. Copy the fingerprint and the digest that `revision.spec.ts` reports into the constants of that file.
 *
 * To correct an existing upcaster, increase `revision` below, update `today` in the golden files, and do step 4. Stored
 * events never change.
 */
import type { EventSchema, Upcaster } from '#kernel';
import type { DomainEvent } from '../events.ts';
import { upcastChargeAbsorbedV1, upcastHoldReleasedV1, upcastHoldSettledV1 } from './charges-v1.ts';
import { upcastKeyCreatedV1, upcastKeyUpdatedV1 } from './keys.ts';
import { upcastPriceListV1 } from './price-list-v1.ts';
import {
  upcastCreditAddedV1,
  upcastInvoiceIssuedV1,
  upcastPaymentReceivedV1,
  upcastTopupCreditedV1,
} from './topups.ts';

/** The upcasters of every event type, one for each step from a version to the next. */
const upcasters: Readonly<Record<DomainEvent['type'], readonly Upcaster[]>> = {
  AccountOpened: [],
  KeyCreated: [upcastKeyCreatedV1],
  KeyUpdated: [upcastKeyUpdatedV1],
  KeyRevoked: [],
  CreditAdded: [upcastCreditAddedV1],
  CreditReversed: [],
  BalanceAdjusted: [],
  AccountNamed: [],
  FundsHeld: [],
  HoldExtended: [],
  HoldKept: [],
  HoldSettled: [upcastHoldSettledV1],
  HoldReleased: [upcastHoldReleasedV1],
  HoldExpired: [],
  ChargeAbsorbed: [upcastChargeAbsorbedV1],
  ChargeReversed: [],
  ChallengeIssued: [],
  ChallengePaid: [],
  ChallengeOverpaid: [],
  ChallengeForfeited: [],
  InvoiceAllowed: [],
  InvoiceDropped: [],
  InvoiceIssued: [upcastInvoiceIssuedV1],
  PaymentSeen: [],
  PaymentLost: [],
  PaymentReceived: [upcastPaymentReceivedV1],
  TopupCredited: [upcastTopupCreditedV1],
  ExcessCredited: [],
  PaymentClaimed: [],
  PaymentContested: [],
  ContestClosed: [],
  PaymentReversed: [],
  PaymentFeeCharged: [],
  WalletConnected: [],
  WalletDisconnected: [],
  AutoTopupBegun: [],
  AutoTopupInvoiced: [],
  WalletAsked: [],
  WalletRequestEnded: [],
  WalletAnswered: [],
  AutoTopupEnded: [],
  AutoTopupPaused: [],
  VideoRequested: [],
  VideoHeld: [],
  VideoSubmissionBegun: [],
  VideoSubmitted: [],
  VideoSubmissionFailed: [],
  VideoMade: [],
  VideoFetchFailed: [],
  VideoStored: [],
  VideoSettled: [],
  VideoFailed: [],
  VideoReleased: [],
  VideoCostClosed: [],
  PriceListPublished: [upcastPriceListV1],
  RequestRefused: [],
};

export const EVENT_SCHEMA: EventSchema = {
  upcasters,
  revision: 1,
  // Types that only newer builds write, and that readers of the log in this build skip.
  skippable: new Set<string>(),
};
