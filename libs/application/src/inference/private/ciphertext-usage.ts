/**
 * What can be known of a chat's usage without reading it. A token is a byte of text or more, so the lengths of its ciphertext
 * bound it from above; the enclave's report is believed within that bound, and where there is none, the usage is estimated.
 */
import { getQuantity, type Usage } from '#domain';

/** What else than text is in the ciphertext of an enclave, and beside it in what it is asked. */
export interface EnclaveOverhead {
  /** Bytes of an event of an answer that are not text, at least. */
  readonly eventBytes: number;
  /** Tokens in an event, at most, where that is known. */
  readonly eventTokens?: number | undefined;
  /** Tokens that its chat template adds to a request, at most. */
  readonly templateTokens: number;
  /** Tokens that the model reads at once, at most. */
  readonly context: number;
}

/** Estimates take a token for so many bytes: English has four and more, code and other scripts fewer. */
const BYTES_PER_TOKEN = 3;
/** What is beyond these is no honest count: even token probabilities, or fields that a server skips, take up less. */
const MAX_BYTES_PER_INPUT_TOKEN = 64;
const MAX_BYTES_PER_OUTPUT_TOKEN = 4_096;
/** Events of a stream that have no token, at most, and how many of the others may have none. */
const MAX_EMPTY_EVENTS = 8;
const MAX_EVENTS_PER_TOKEN = 4;

/** A report as far as the bytes allow it, or what takes its place. */
export interface ClampedUsage {
  readonly usage: Usage;
  /** It is not what the enclave reported. */
  readonly estimated: boolean;
  /** What is wrong with the report. */
  readonly problem?: string;
}

export class CiphertextUsageLimits {
  private sentBytes = 0;
  private frameCount = 0;
  /** Bytes of all frames, as they were announced, and how many of the last one have not come. */
  private announcedBytes = 0;
  private missingBytes = 0;
  private isStream = false;

  constructor(private readonly overhead: EnclaveOverhead) {}

  /** So many more bytes of the request are passed on. */
  recordSent(bytes: number): void {
    this.sentBytes += bytes;
  }

  /**
   * More frames of an answer are there.
   * @param isStream each of them is an event
   * @param missing how many bytes of the last frame are still to come
   */
  recordReceived(frames: readonly number[], isStream: boolean, missing = 0): void {
    this.isStream = isStream;
    this.missingBytes = missing;
    for (const bytes of frames) this.announcedBytes += bytes;
    this.frameCount += frames.length;
  }

  /** What is held for: no honest count is higher where events have as many tokens as they should. */
  get maxUsage(): Required<Pick<Usage, 'input' | 'output'>> {
    const { templateTokens, eventTokens, context } = this.overhead;
    const output = this.isStream && eventTokens ? this.frameCount * eventTokens : this.maxTextBytes;
    return { input: Math.min(this.sentBytes + templateTokens, context), output };
  }

  private get receivedBytes(): number {
    return Math.max(this.announcedBytes - this.missingBytes, 0);
  }

  /** No honest count of the answer is higher, however many tokens an event has: its bytes that are text, at most. */
  private get maxTextBytes(): number {
    const { isStream, frameCount, receivedBytes, overhead } = this;
    const overheadBytes = overhead.eventBytes * (isStream ? frameCount : Math.min(frameCount, 1));
    return Math.max(receivedBytes - overheadBytes, frameCount);
  }

  /** What it comes to where nothing is reported. */
  private get estimatedUsage(): Usage {
    const { maxUsage, frameCount, isStream, overhead } = this;
    const textTokens = Math.max(Math.ceil(this.maxTextBytes / BYTES_PER_TOKEN), frameCount);
    return {
      input: Math.min(Math.ceil(this.sentBytes / BYTES_PER_TOKEN), maxUsage.input),
      output: isStream && overhead.eventTokens ? maxUsage.output : textTokens,
    };
  }

  /** A report that claims more than there can be counts as that; one of next to nothing gives way to the estimate. */
  clamp(reported: Usage | undefined): ClampedUsage {
    if (reported === undefined) return { usage: this.estimatedUsage, estimated: true, problem: 'reports no usage' };
    const [input, output] = [getQuantity('input', reported), getQuantity('output', reported)];
    const { minUsage, estimatedUsage } = this;
    const maxUsage = { input: this.maxUsage.input, output: Math.max(this.maxTextBytes, this.maxUsage.output) };
    const bounds = `its bytes allow ${minUsage.input} to ${maxUsage.input}, and ${minUsage.output} to ${maxUsage.output}`;
    const implausible = { estimated: true, problem: `reports ${input} tokens in and ${output} out, where ${bounds}` };
    if (input < minUsage.input || output < minUsage.output) return { usage: estimatedUsage, ...implausible };
    if (input <= maxUsage.input && output <= maxUsage.output) return { usage: { input, output }, estimated: false };
    return {
      usage: { input: Math.min(input, maxUsage.input), output: Math.min(output, maxUsage.output) },
      ...implausible,
    };
  }

  /** No honest count is lower. */
  private get minUsage(): Required<Pick<Usage, 'input' | 'output'>> {
    const { sentBytes, receivedBytes, frameCount, isStream } = this;
    const output = isStream
      ? (frameCount - MAX_EMPTY_EVENTS) / MAX_EVENTS_PER_TOKEN
      : receivedBytes / MAX_BYTES_PER_OUTPUT_TOKEN;
    return { input: Math.floor(sentBytes / MAX_BYTES_PER_INPUT_TOKEN), output: Math.max(Math.floor(output), 0) };
  }
}
