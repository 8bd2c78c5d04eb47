/**
 * What can be known of a chat's usage without reading it. A token is a byte of text or more, so the lengths of its ciphertext
 * bound it from above; the enclave's report is believed within that bound, and where there is none, the usage is estimated.
 */
import { quantityOf, type Usage } from '#domain';

/** What else than text is in the ciphertext of an enclave, and beside it in what it is asked. */
export interface EnclaveTerms {
  /** Bytes of an event of an answer that are not text, at least. */
  readonly eventBytes: number;
  /** Tokens that its chat template adds to a request, at most. */
  readonly templateTokens: number;
  /** Tokens that the model reads at once, at most. */
  readonly context: number;
}

/** Estimates take a token for so many bytes: English has four and more, code and other scripts fewer. */
const BYTES_OF_TOKEN = 3;
/**
 * Events of a stream are alike but for their text, so that the smallest ones tell what of each is none. A few have no token at
 * all, as the last ones do, and are left out; those that are left have this much text at most. What is longer than events with
 * one token are is several, and tells nothing.
 */
const SMALLEST_LEFT_OUT = 3;
const TEXT_OF_SMALLEST = 4;
/** What is beyond these is no honest count: even token probabilities, or fields that a server skips, take up less. */
const MOST_BYTES_OF_INPUT = 64;
const MOST_BYTES_OF_OUTPUT = 4_096;
/** Events of a stream that have no token, at most, and how many of the others may have none. */
const EMPTY_EVENTS = 8;
const EVENTS_OF_TOKEN = 4;

/** A report as far as the bytes allow it, or what takes its place. */
export interface JudgedUsage {
  readonly usage: Usage;
  /** It is not what the enclave reported. */
  readonly estimated: boolean;
  /** What is wrong with the report. */
  readonly doubt?: string;
}

export class CiphertextUsage {
  private sent = 0;
  private frames = 0;
  /** Bytes of all frames, as they were announced, and how many of the last one have not come. */
  private announced = 0;
  private missing = 0;
  private isStream = false;
  /** The lengths of the smallest events, the smallest first. */
  private smallest: number[] = [];

  constructor(private readonly terms: EnclaveTerms) {}

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
    for (const bytes of frames) {
      this.announced += bytes;
      this.frames++;
      const [largest = Number.POSITIVE_INFINITY] = this.smallest.slice(SMALLEST_LEFT_OUT);
      if (bytes >= this.terms.eventBytes && bytes < Math.min(largest, 2 * this.terms.eventBytes))
        this.smallest = [...this.smallest, bytes].toSorted((a, b) => a - b).slice(0, SMALLEST_LEFT_OUT + 1);
    }
  }

  /** What is held for: no honest count is higher where an event has one token, or is as short as such events are. */
  get most(): Required<Pick<Usage, 'input' | 'output'>> {
    const { templateTokens, context } = this.terms;
    return { input: Math.min(this.sent + templateTokens, context), output: Math.max(this.text, this.frames) };
  }

  private get received(): number {
    return Math.max(this.announced - this.missing, 0);
  }

  /** Bytes of an answer that are text, at most. */
  private get text(): number {
    const like = this.smallest[SMALLEST_LEFT_OUT] ?? 0;
    return this.textBeside(Math.max(like - TEXT_OF_SMALLEST, this.terms.eventBytes));
  }

  /** Bytes of an answer that are text where each event has so many others. */
  private textBeside(others: number): number {
    const { isStream, frames, received, terms } = this;
    if (frames === 0) return 0;
    return Math.max(received - (isStream ? others * frames : terms.eventBytes), 0);
  }

  /** No honest count is higher, however many tokens an event has. */
  private get conceivable(): Required<Pick<Usage, 'input' | 'output'>> {
    const { most } = this;
    return { input: most.input, output: Math.max(this.textBeside(this.terms.eventBytes), most.output) };
  }

  /** What it comes to where nothing is reported: an event has a token, or as many as its text is long. */
  private get estimated(): Usage {
    const { input, output } = this.most;
    const beyond = this.isStream ? this.text - this.frames * TEXT_OF_SMALLEST : this.text;
    const made = Math.max(this.frames, Math.ceil(beyond / BYTES_OF_TOKEN));
    return {
      input: Math.min(Math.ceil(this.sent / BYTES_OF_TOKEN), input),
      output: Math.min(made, output),
    };
  }

  /**
   * A report that claims more than there can be counts as that; one of next to nothing gives way to the estimate. Where events have
   * several tokens each, it may be above what was held for: it is believed, and raises an alarm.
   */
  judge(reported: Usage | undefined): JudgedUsage {
    if (reported === undefined) return { usage: this.estimated, estimated: true, doubt: 'reports no usage' };
    const [input, output] = [quantityOf('input', reported), quantityOf('output', reported)];
    const { most, least, conceivable } = this;
    const told = `reports ${input} tokens in and ${output} out`;
    const bounds = `its bytes allow ${least.input} to ${most.input}, and ${least.output} to ${most.output}`;
    const doubt = `${told}, where ${bounds}`;
    if (input < least.input || output < least.output) return { usage: this.estimated, estimated: true, doubt };
    if (input <= most.input && output <= most.output) return { usage: { input, output }, estimated: false };
    const usage = { input: Math.min(input, conceivable.input), output: Math.min(output, conceivable.output) };
    return { usage, estimated: usage.input < input || usage.output < output, doubt };
  }

  /** No honest count is lower. */
  private get least(): Required<Pick<Usage, 'input' | 'output'>> {
    const { sent, received, frames, isStream } = this;
    const output = isStream ? (frames - EMPTY_EVENTS) / EVENTS_OF_TOKEN : received / MOST_BYTES_OF_OUTPUT;
    return { input: Math.floor(sent / MOST_BYTES_OF_INPUT), output: Math.max(Math.floor(output), 0) };
  }
}
