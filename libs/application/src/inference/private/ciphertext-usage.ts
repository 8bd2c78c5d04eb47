/**
 * Limits and estimates the usage of a chat that is encrypted. A token has at least one byte of text, so the length of
 * the ciphertext is an upper bound. The enclave's report is accepted within bounds; without a report, usage is
 * estimated.
 */
import { getQuantity, type Usage } from '#domain';

/** Properties of an enclave from which bounds of the usage are calculated. */
export interface EnclaveOverhead {
  /** Minimum bytes of an event of a response that are not text. */
  readonly eventBytes: number;
  /** Maximum tokens in an event; undefined if it is unknown. */
  readonly eventTokens?: number | undefined;
  /** Maximum tokens that the chat template adds to a request. */
  readonly templateTokens: number;
  /** Context of the model in tokens. */
  readonly context: number;
}

/** Bytes per token in estimates: English text has four or more, code and other scripts fewer. */
const BYTES_PER_TOKEN = 3;
/** A report with more bytes per token is implausible. Even log probabilities and ignored fields take fewer bytes. */
const MAX_BYTES_PER_INPUT_TOKEN = 64;
const MAX_BYTES_PER_OUTPUT_TOKEN = 4_096;
/** In a plausible stream, this many events need not have tokens. */
const MAX_EMPTY_EVENTS = 8;
/** Of the remaining events, at least one in this many has a token. */
const MAX_EVENTS_PER_TOKEN = 4;

/** The reported usage within its bounds, or an estimate. */
export interface ClampedUsage {
  readonly usage: Usage;
  /** Whether the usage differs from the enclave's report. */
  readonly estimated: boolean;
  /** Why the report is implausible, or that there is none; undefined if it was accepted unchanged. */
  readonly problem?: string;
}

export class CiphertextUsageLimits {
  private sentBytes = 0;
  private frameCount = 0;
  /** Announced bytes of all frames. */
  private announcedBytes = 0;
  /** Bytes of the last frame that have not arrived. */
  private missingBytes = 0;
  private isStream = false;

  constructor(private readonly overhead: EnclaveOverhead) {}

  /** Records further bytes of the request. */
  recordSent(bytes: number): void {
    this.sentBytes += bytes;
  }

  /**
   * Records further frames of the response.
   * @param frames announced size of each frame in bytes
   * @param isStream whether each frame is an event
   * @param missing bytes of the last frame that have not arrived
   */
  recordReceived(frames: readonly number[], isStream: boolean, missing = 0): void {
    this.isStream = isStream;
    this.missingBytes = missing;
    for (const bytes of frames) this.announcedBytes += bytes;
    this.frameCount += frames.length;
  }

  /** The maximum usage, for which money is held. Assumes that no event has more tokens than `eventTokens`. */
  get maxUsage(): Required<Pick<Usage, 'input' | 'output'>> {
    const { templateTokens, eventTokens, context } = this.overhead;
    const output = this.isStream && eventTokens ? this.frameCount * eventTokens : this.maxTextBytes;
    return { input: Math.min(this.sentBytes + templateTokens, context), output };
  }

  private get receivedBytes(): number {
    return Math.max(this.announcedBytes - this.missingBytes, 0);
  }

  /** Maximum bytes of text in the response, at least one per frame. The response has at most as many tokens. */
  private get maxTextBytes(): number {
    const { isStream, frameCount, receivedBytes, overhead } = this;
    const overheadBytes = overhead.eventBytes * (isStream ? frameCount : Math.min(frameCount, 1));
    return Math.max(receivedBytes - overheadBytes, frameCount);
  }

  private get estimatedUsage(): Usage {
    const { maxUsage, frameCount, isStream, overhead } = this;
    const textTokens = Math.max(Math.ceil(this.maxTextBytes / BYTES_PER_TOKEN), frameCount);
    return {
      input: Math.min(Math.ceil(this.sentBytes / BYTES_PER_TOKEN), maxUsage.input),
      output: isStream && overhead.eventTokens ? maxUsage.output : textTokens,
    };
  }

  /** Limits a report to its upper bounds. An estimate replaces a missing report, or one below its lower bounds. */
  clamp(reported: Usage | undefined): ClampedUsage {
    if (reported === undefined) return { usage: this.estimatedUsage, estimated: true, problem: 'reports no usage' };
    const [input, output] = [getQuantity('input', reported), getQuantity('output', reported)];
    const { minUsage, estimatedUsage } = this;
    const maxUsage = { input: this.maxUsage.input, output: Math.max(this.maxTextBytes, this.maxUsage.output) };
    const bounds = `its bytes allow ${minUsage.input} to ${maxUsage.input}, and ${minUsage.output} to ${maxUsage.output}`;
    const implausible = { estimated: true, problem: `reports ${input} input and ${output} output tokens; ${bounds}` };
    if (input < minUsage.input || output < minUsage.output) return { usage: estimatedUsage, ...implausible };
    if (input <= maxUsage.input && output <= maxUsage.output) return { usage: { input, output }, estimated: false };
    return {
      usage: { input: Math.min(input, maxUsage.input), output: Math.min(output, maxUsage.output) },
      ...implausible,
    };
  }

  /** Lower bounds of a plausible report. */
  private get minUsage(): Required<Pick<Usage, 'input' | 'output'>> {
    const { sentBytes, receivedBytes, frameCount, isStream } = this;
    const output = isStream
      ? (frameCount - MAX_EMPTY_EVENTS) / MAX_EVENTS_PER_TOKEN
      : receivedBytes / MAX_BYTES_PER_OUTPUT_TOKEN;
    return { input: Math.floor(sentBytes / MAX_BYTES_PER_INPUT_TOKEN), output: Math.max(Math.floor(output), 0) };
  }
}
