/** Rules for the stream of a video job, and for the hold that the job ends. */
import { type AuditedEvent, parseAmount } from './event-data.ts';
import type { FindingRecorder } from './findings.ts';
import { type AuditedPayer, checkCharge } from './payer.ts';

export class AuditedVideoStream {
  request: AuditedEvent['data'] | undefined;
  /** How the job ended: `VideoStored` or `VideoFailed`. */
  result: AuditedEvent | undefined;
  /** Whether the end of the hold is recorded. */
  isEnded = false;
  private isHeld = false;
  private submission = 0;
  private endpoint = 0;
  /** Whether a provider may have accepted the last submission. */
  private isSubmitted = false;
  /** The provider has accepted the job. */
  private isAccepted = false;
  private isMade = false;
  private isCostClosed = false;
  private fetches = 0;
  private token = 0;

  constructor(private readonly recorder: FindingRecorder) {}

  /** @param payers the payers by stream */
  apply(event: AuditedEvent, payers: ReadonlyMap<string, AuditedPayer>): void {
    const { type, data, stream } = event;
    const { recorder, request } = this;
    const isRequest = type === 'VideoRequested';
    recorder.check(isRequest !== (request !== undefined), 'a job is requested once, before all else', () => stream);
    if (isRequest) {
      this.start(data, payers);
      return;
    }
    if (!request) return;
    const { holdId, payer: payerStream } = request.hold;
    const payer = payers.get(payerStream);
    switch (type) {
      case 'VideoHeld': {
        const hold = payer?.holds.get(holdId);
        const isOwner = hold?.hasJob === true && hold.owner === stream;
        recorder.check(isOwner && !this.isHeld, 'a job owns its hold once', () => `${holdId} of ${hold?.owner}`);
        this.isHeld = true;
        return;
      }
      case 'VideoSubmissionBegun':
        this.submit(data, request);
        return;
      case 'VideoSubmitted':
      case 'VideoSubmissionFailed':
        this.endSubmission(type, data);
        return;
      case 'VideoMade':
        recorder.check(this.isAccepted && !this.isMade, 'an accepted video is made once', () => stream);
        this.isMade = true;
        return;
      case 'VideoFetchFailed':
        this.fetches++;
        recorder.checkSame(data.fetch, this.fetches, 'fetches of a video are counted', 'the fetch');
        return;
      case 'VideoStored':
      case 'VideoFailed':
        this.end(event);
        return;
      case 'VideoSettled':
      case 'VideoReleased':
        this.recordHoldEnd(event, payer, holdId);
        return;
      case 'VideoCostClosed':
        this.closeCost(data);
        return;
      default:
    }
  }

  private start(data: AuditedEvent['data'], payers: ReadonlyMap<string, AuditedPayer>): void {
    const { accountId, keyId, hold } = data;
    const payer = payers.get(hold.payer);
    const isPlaced = payer?.holds.has(hold.holdId) === true || payer?.ends.has(hold.holdId) === true;
    const open = payer?.holds.get(hold.holdId);
    const isSame = !open || (open.amount === parseAmount(hold.amount) && open.keyId === keyId);
    const rule = 'a job has the hold of its payer';
    const describe = () => `${hold.holdId} of ${hold.amount} of ${hold.payer}, open ${open?.amount}`;
    this.recorder.check(isPlaced && isSame, rule, describe);
    const isPayer = accountId === null ? hold.payer.startsWith('challenge-') : hold.payer === `account-${accountId}`;
    this.recorder.check(isPayer, 'a job has the account of its payer', () => `${accountId}, ${hold.payer}`);
    this.request ??= data;
  }

  private submit(data: AuditedEvent['data'], request: AuditedEvent['data']): void {
    const { recorder } = this;
    const { submission, endpoint, token, at } = data;
    const describe = () => `submission ${submission} at ${at}`;
    recorder.check(!this.isSubmitted, 'a job is not submitted again while a provider may have it', describe);
    recorder.check(this.isHeld && !this.result, 'only a job with a hold is submitted', describe);
    recorder.checkSame(submission, this.submission + 1, 'submissions are counted', 'the submission');
    const isNext = endpoint >= this.endpoint && endpoint <= this.endpoint + 1 && endpoint < request.endpoints.length;
    recorder.check(isNext, 'a job is submitted to its endpoints in order', () => `${endpoint} after ${this.endpoint}`);
    recorder.check(token >= this.token, 'fencing tokens never decrease', () => `${token} after ${this.token}`);
    recorder.check(at < request.deadline, 'no job is submitted after its deadline', describe);
    this.submission = submission;
    this.endpoint = endpoint;
    this.token = token;
    this.isSubmitted = true;
  }

  private endSubmission(type: string, { submission, outcome }: AuditedEvent['data']): void {
    const isOpen = this.isSubmitted && !this.isAccepted && !this.result && submission === this.submission;
    this.recorder.check(isOpen, 'a submission ends once', () => `submission ${submission} of ${this.submission}`);
    if (type === 'VideoSubmitted') this.isAccepted = true;
    else if (outcome !== 'unknown') this.isSubmitted = false;
  }

  private end(event: AuditedEvent): void {
    const { type, data } = event;
    const { recorder } = this;
    recorder.check(!this.result, 'a job has one result', () => `${type} after ${this.result?.type}`);
    this.result ??= event;
    const charge = type === 'VideoStored' ? data.charge : data.absorbed;
    if (charge) {
      checkCharge(charge, recorder);
      recorder.check(this.isAccepted, 'only an accepted job has a cost', () => charge.cost);
    }
    if (type === 'VideoStored') recorder.check(this.isMade, 'a stored video was made', () => charge?.price ?? '');
    else recorder.check(!charge || charge.price === '0', 'a failed video is free', () => charge?.price ?? '');
  }

  private recordHoldEnd({ type, data }: AuditedEvent, payer: AuditedPayer | undefined, holdId: string): void {
    const { recorder, result } = this;
    const end = payer?.ends.get(holdId);
    const describe = () => `${holdId} was ${end?.resolution ?? 'not ended'}, charged ${end?.charged}`;
    recorder.check(!this.isEnded, 'a job ends its hold once', describe);
    this.isEnded = true;
    if (type === 'VideoSettled') {
      const isSame = end?.resolution === 'settled' && end.charged === parseAmount(data.charged);
      const isPriced = result?.type === 'VideoStored' && parseAmount(result.data.charge.price) === end?.price;
      recorder.check(isSame && isPriced, 'a stored video is charged to its payer', describe);
      return;
    }
    const isUncharged = result?.type === 'VideoFailed' && end !== undefined && end.resolution !== 'settled';
    recorder.check(isUncharged, 'the hold of a failed video ends without a charge', describe);
    const absorbed = result?.data.absorbed;
    const isAbsorbed = !absorbed || JSON.stringify(end?.absorbed) === JSON.stringify(absorbed);
    recorder.check(isAbsorbed, 'the cost of a failed video is absorbed', () => `${holdId}: ${absorbed?.cost}`);
  }

  private closeCost({ provider, creditor, cost }: AuditedEvent['data']): void {
    const { recorder } = this;
    const open = this.result?.data.open;
    const isOpen = open !== undefined && open.provider === provider && open.creditor === creditor;
    recorder.check(isOpen && parseAmount(cost) >= 0n, 'only an open cost is closed', () => `${cost} of ${provider}`);
    recorder.check(!this.isCostClosed, 'a cost is closed once', () => cost);
    this.isCostClosed = true;
  }
}
