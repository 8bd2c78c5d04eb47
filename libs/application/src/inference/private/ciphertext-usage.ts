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
/** A report is doubted that has fewer tokens than one for so many bytes of a long answer. Token probabilities take up hundreds. */
const MOST_BYTES_OF_TOKEN = 4_096;
const LONG_BYTES = 64 * 1024;

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
  /** Bytes of frames, and what of them may be text. */
  private received = 0;
  private text = 0;

  constructor(private readonly terms: EnclaveTerms) {}

  /** So many more bytes of the request are passed on. */
  send(bytes: number): void {
    this.sent += bytes;
  }

  /** More frames of an answer are there. @param isStream each of them is an event */
  receive(frames: readonly number[], isStream: boolean): void {
    for (const bytes of frames) {
      const besides = isStream || this.frames === 0 ? this.terms.eventBytes : 0;
      this.text += Math.max(bytes - besides, 1);
      this.received += bytes;
      this.frames++;
    }
  }

  /** No honest count is higher. */
  get most(): Required<Pick<Usage, 'input' | 'output'>> {
    const { templateTokens, context } = this.terms;
    return { input: Math.min(this.sent + templateTokens, context), output: this.text };
  }

  /** What it comes to where nothing is reported: an event has a token, or as many as its text is long. */
  private get estimated(): Usage {
    const { input, output } = this.most;
    const made = Math.max(this.frames, Math.ceil(this.text / BYTES_OF_TOKEN));
    return {
      input: Math.min(Math.ceil(this.sent / BYTES_OF_TOKEN), input),
      output: Math.min(made, output),
    };
  }

  /** A report that claims more than there can be counts as that. */
  judge(reported: Usage | undefined): JudgedUsage {
    if (reported === undefined) return { usage: this.estimated, estimated: true, doubt: 'reports no usage' };
    const [input, output] = [quantityOf('input', reported), quantityOf('output', reported)];
    const { most } = this;
    const told = `reports ${input} tokens in and ${output} out`;
    if (input > most.input || output > most.output) {
      const usage = { input: Math.min(input, most.input), output: Math.min(output, most.output) };
      return { usage, estimated: true, doubt: `${told}, where its bytes allow ${most.input} and ${most.output}` };
    }
    const isLow = this.received > LONG_BYTES && output * MOST_BYTES_OF_TOKEN < this.received;
    const doubt = isLow ? { doubt: `${told} for an answer of ${this.received} bytes` } : {};
    return { usage: { input, output }, estimated: false, ...doubt };
  }
}
