/** Rules for every event: its stream, its revision, its position, its id and its type. */
import type { AuditedEvent } from './event-data.ts';
import type { FindingRecorder } from './findings.ts';

const split = (...lines: readonly string[]): readonly string[] => lines.flatMap((line) => line.split(' '));

/** The types of events by category of streams. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  account: split(
    'AccountOpened KeyCreated KeyUpdated KeyRevoked CreditAdded CreditReversed BalanceAdjusted',
    'FundsHeld HoldExtended HoldKept HoldSettled HoldReleased HoldExpired ChargeAbsorbed',
    'ChargeReversed',
  ),
  name: split('AccountNamed'),
  challenge: split(
    'ChallengeIssued ChallengePaid ChallengeOverpaid ChallengeForfeited PaymentFeeCharged FundsHeld',
    'HoldKept HoldSettled HoldReleased HoldExpired ChargeAbsorbed ChargeReversed',
  ),
  topup: split(
    'InvoiceIssued PaymentSeen PaymentLost PaymentReceived TopupCredited ExcessCredited',
    'PaymentReversed PaymentFeeCharged',
  ),
  payment: split('PaymentClaimed PaymentContested ContestClosed'),
  autotopup: split(
    'WalletConnected WalletDisconnected AutoTopupBegun AutoTopupInvoiced AutoTopupEnded',
    'AutoTopupPaused WalletAsked WalletRequestEnded WalletAnswered',
  ),
  video: split(
    'VideoRequested VideoHeld VideoSubmissionBegun VideoSubmitted VideoSubmissionFailed VideoMade',
    'VideoFetchFailed VideoStored VideoSettled VideoFailed VideoReleased VideoCostClosed',
  ),
  invoices: split('InvoiceAllowed InvoiceDropped'),
  pricelist: split('PriceListPublished'),
  refusals: split('RequestRefused'),
};
const MAX_REJECTED_REQUESTS = 50;
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

export class StreamRules {
  private readonly lengths = new Map<string, number>();
  private readonly ids = new Set<string>();
  private readonly rejectedRequests = new Set<string>();
  private position: bigint | undefined;
  private readonly priceLists = new Set<string>();
  /** The price lists of charges, each with the first such event. */
  private readonly usedPriceLists = new Map<string, string>();

  constructor(private readonly recorder: FindingRecorder) {}

  apply({ stream, id, type, revision, position, data }: AuditedEvent): void {
    const { recorder } = this;
    const length = this.lengths.get(stream) ?? 0;
    recorder.checkSame(Number(revision), length, 'the revisions of a stream are contiguous', 'the revision');
    this.lengths.set(stream, Math.max(length, Number(revision)) + (Number(revision) < length ? 0 : 1));
    const isNext = this.position === undefined || position > this.position;
    recorder.check(isNext, 'positions increase', () => `${position} after ${this.position}`);
    this.position = position;
    recorder.check(!this.ids.has(id), 'ids of events are unique', () => id);
    this.ids.add(id);
    const types = TYPES[stream.slice(0, Math.max(stream.indexOf('-'), 0))];
    const isKnown = Object.values(TYPES).some((types) => types.includes(type));
    recorder.check(isKnown, 'the types of events are known', () => type);
    const fits = types?.includes(type) === true;
    recorder.check(fits, 'the types of events belong to the category of the stream', () => type);
    recorder.check(INSTANT.test(data.at), 'instants are in UTC with milliseconds', () => data.at);
    if (type === 'AccountNamed') recorder.checkSame(Number(revision), 0, 'a name is given once', 'the revision');
    if (type === 'PriceListPublished') this.publish(stream, data.version, revision);
    if (type === 'RequestRefused') this.recordRejection(stream, data.requestId, length);
    if (data.charge) this.usedPriceLists.set(data.charge.priceList, `${type} of ${stream}`);
  }

  finish(): void {
    // Worlds without published price lists have charges without them.
    if (this.priceLists.size === 0) return;
    for (const [version, user] of this.usedPriceLists)
      this.recorder.check(this.priceLists.has(version), 'a charge names a published price list', () => {
        return `${version}, ${user}`;
      });
  }

  private publish(stream: string, version: string, revision: number): void {
    const isFirst = Number(revision) === 0 && stream === `pricelist-${version}`;
    this.recorder.check(isFirst, 'a price list is published once', () => version);
    this.priceLists.add(version);
  }

  private recordRejection(stream: string, requestId: string, length: number): void {
    const key = `${stream} ${requestId}`;
    const isNew = !this.rejectedRequests.has(key) && length < MAX_REJECTED_REQUESTS;
    this.recorder.check(isNew, 'rejected requests are recorded once, at most 50 a day', () => requestId);
    this.rejectedRequests.add(key);
  }
}
