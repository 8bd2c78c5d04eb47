/**
 * How facts of older versions are read as facts of today. To change the shape of a fact: put the new shape into
 * `events.ts`, an upcaster from the last version at the end of its type's chain here, and a golden file
 * `<type>.v<n>.json` of the new version beside the others (`libs/domain/src/golden`). What was stored stays as it is.
 */
import type { EventSchema, Upcaster } from '#kernel';
import type { DomainEvent } from '../events.ts';
import { chargeAbsorbedFromV1, holdReleasedFromV1, holdSettledFromV1 } from './charges-v1.ts';
import { priceListFromV1 } from './price-list-v1.ts';
import { creditAdded2, invoiceIssued2, paymentReceived2, topupCredited2 } from './topups.ts';

/** Every type of fact, and what leads from each of its versions to the next. */
const upcasters: Readonly<Record<DomainEvent['type'], readonly Upcaster[]>> = {
  AccountOpened: [],
  KeyCreated: [],
  KeyUpdated: [],
  KeyRevoked: [],
  CreditAdded: [creditAdded2],
  CreditReversed: [],
  FundsHeld: [],
  HoldExtended: [],
  HoldKept: [],
  HoldSettled: [holdSettledFromV1],
  HoldReleased: [holdReleasedFromV1],
  HoldExpired: [],
  ChargeAbsorbed: [chargeAbsorbedFromV1],
  ChallengeIssued: [],
  ChallengePaid: [],
  ChallengeOverpaid: [],
  ChallengeForfeited: [],
  InvoiceAllowed: [],
  InvoiceIssued: [invoiceIssued2],
  PaymentSeen: [],
  PaymentLost: [],
  PaymentReceived: [paymentReceived2],
  TopupCredited: [topupCredited2],
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
  PriceListPublished: [priceListFromV1],
  RequestRefused: [],
};

export const EVENT_SCHEMA: EventSchema = {
  upcasters,
  revision: 1,
  // A type that a newer program writes and that an older one may skip, as long as both run.
  skippable: new Set<string>(),
};
