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
const BYTES_OF_TOKEN = 3;
/** What is beyond these is no honest count: even token probabilities, or fields that a server skips, take up less. */
const MOST_BYTES_OF_INPUT = 64;
const MOST_BYTES_OF_OUTPUT = 4_096;
/** Events of a stream that have no token, at most, and how many of the others may have none. */
const EMPTY_EVENTS = 8;
const EVENTS_OF_TOKEN = 4;

/** A report as far as the bytes allow it, or what takes its place. */
export interface ClampedUsage {
  readonly usage: Usage;
  /** It is not what the enclave reported. */
  readonly estimated: boolean;
  /** What is wrong with the report. */
  readonly doubt?: string;
}

export class CiphertextUsageLimits {
  private sent = 0;
  private frames = 0;
  /** Bytes of all frames, as they were announced, and how many of the last one have not come. */
  private announced = 0;
  private missing = 0;
  private isStream = false;

  constructor(private readonly terms: EnclaveOverhead) {}

  /** So many more bytes of the request are passed on. */
  send(bytes: number): void {
    this.sent += bytes;
  }

  /**
   * More frames of an answer are there.
   * @param isStream each of them is an event
   * @param missing how many bytes of the last frame are still to come
   */
  receive(frames: readonly number[], isStream: boolean, missing = 0): void {
    this.isStream = isStream;
    this.missing = missing;
    for (const bytes of frames) this.announced += bytes;
    this.frames += frames.length;
  }

  /** What is held for: no honest count is higher where events have as many tokens as they should. */
  get most(): Required<Pick<Usage, 'input' | 'output'>> {
    const { templateTokens, eventTokens, context } = this.terms;
    const output = this.isStream && eventTokens ? this.frames * eventTokens : this.room;
    return { input: Math.min(this.sent + templateTokens, context), output };
  }

  private get received(): number {
    return Math.max(this.announced - this.missing, 0);
  }

  /** No honest count of the answer is higher, however many tokens an event has: its bytes that are text, at most. */
  private get room(): number {
    const { isStream, frames, received, terms } = this;
    const besides = terms.eventBytes * (isStream ? frames : Math.min(frames, 1));
    return Math.max(received - besides, frames);
  }

  /** What it comes to where nothing is reported. */
  private get estimated(): Usage {
    const { most, frames, isStream, terms } = this;
    const ofText = Math.max(Math.ceil(this.room / BYTES_OF_TOKEN), frames);
    return {
      input: Math.min(Math.ceil(this.sent / BYTES_OF_TOKEN), most.input),
      output: isStream && terms.eventTokens ? most.output : ofText,
    };
  }

  /** A report that claims more than there can be counts as that; one of next to nothing gives way to the estimate. */
  judge(reported: Usage | undefined): ClampedUsage {
    if (reported === undefined) return { usage: this.estimated, estimated: true, doubt: 'reports no usage' };
    const [input, output] = [getQuantity('input', reported), getQuantity('output', reported)];
    const { least, estimated } = this;
    const most = { input: this.most.input, output: Math.max(this.room, this.most.output) };
    const bounds = `its bytes allow ${least.input} to ${most.input}, and ${least.output} to ${most.output}`;
    const doubted = { estimated: true, doubt: `reports ${input} tokens in and ${output} out, where ${bounds}` };
    if (input < least.input || output < least.output) return { usage: estimated, ...doubted };
    if (input <= most.input && output <= most.output) return { usage: { input, output }, estimated: false };
    return { usage: { input: Math.min(input, most.input), output: Math.min(output, most.output) }, ...doubted };
  }

  /** No honest count is lower. */
  private get least(): Required<Pick<Usage, 'input' | 'output'>> {
    const { sent, received, frames, isStream } = this;
    const output = isStream ? (frames - EMPTY_EVENTS) / EVENTS_OF_TOKEN : received / MOST_BYTES_OF_OUTPUT;
    return { input: Math.floor(sent / MOST_BYTES_OF_INPUT), output: Math.max(Math.floor(output), 0) };
  }
}
