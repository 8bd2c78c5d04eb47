/**
 * How facts of older versions are read as facts of today. To change the shape of a fact: put the new shape into
 * `events.ts`, an upcaster from the last version at the end of its type's chain here, and a golden file
 * `<type>.v<n>.json` of the new version beside the others (`libs/domain/src/golden`). What was stored stays as it is.
 */
import type { EventSchema, Upcaster } from '#kernel';
import type { DomainEvent } from '../events.ts';
import { upcastChargeAbsorbedV1, upcastHoldReleasedV1, upcastHoldSettledV1 } from './charges-v1.ts';
import { upcastPriceListV1 } from './price-list-v1.ts';
import {
  upcastCreditAddedV1,
  upcastInvoiceIssuedV1,
  upcastPaymentReceivedV1,
  upcastTopupCreditedV1,
} from './topups.ts';

/** Every type of fact, and what leads from each of its versions to the next. */
const upcasters: Readonly<Record<DomainEvent['type'], readonly Upcaster[]>> = {
  AccountOpened: [],
  KeyCreated: [],
  KeyUpdated: [],
  KeyRevoked: [],
  CreditAdded: [upcastCreditAddedV1],
  CreditReversed: [],
  FundsHeld: [],
  HoldExtended: [],
  HoldKept: [],
  HoldSettled: [upcastHoldSettledV1],
  HoldReleased: [upcastHoldReleasedV1],
  HoldExpired: [],
  ChargeAbsorbed: [upcastChargeAbsorbedV1],
  ChallengeIssued: [],
  ChallengePaid: [],
  ChallengeOverpaid: [],
  ChallengeForfeited: [],
  InvoiceAllowed: [],
  InvoiceIssued: [upcastInvoiceIssuedV1],
  PaymentSeen: [],
  PaymentLost: [],
  PaymentReceived: [upcastPaymentReceivedV1],
  TopupCredited: [upcastTopupCreditedV1],
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
  // A type that a newer program writes and that an older one may skip, as long as both run.
  skippable: new Set<string>(),
};
