import type { CompletionStream } from '../../providers/provider.ts';
import type { CountText } from '../../tokens/token-counter.ts';

export type GeneratedText = Pick<CompletionStream, 'getDeliveredText' | 'getMaxGeneratedTokens'>;

/** Before the response has started. */
const NO_TEXT: GeneratedText = { getDeliveredText: () => '', getMaxGeneratedTokens: () => 0 };

/** Counts the tokens of a text while it grows, with the gateway's tokenizer. */
export class TextCount {
  /** Tokens of the complete text at the last count. */
  tokens = 0;
  private source = NO_TEXT;
  /** Tokens of the first `countedCharacters` characters, which are not counted again. */
  private tokensBeforeGap = 0;
  private countedCharacters = 0;
  private bytesAtCount = 0;

  constructor(private readonly countText: CountText) {}

  setSource(source: GeneratedText): void {
    this.source = source;
  }

  /** At least the number of bytes that were generated, and so at least the number of tokens. */
  get bytes(): number {
    return this.source.getMaxGeneratedTokens();
  }

  /** Upper bound of the tokens. The text since the last count is not counted yet and has at most one token per byte. */
  get maxTokens(): number {
    return this.tokens + this.bytes - this.bytesAtCount;
  }

  /** Counts the text up to its last space only once. The rest may end within a token and is counted each time. */
  async update(): Promise<void> {
    const { countText, bytes } = this;
    if (bytes === this.bytesAtCount) return;
    const text = this.source.getDeliveredText();
    const gap = text.lastIndexOf(' ');
    const end = gap > this.countedCharacters ? gap : this.countedCharacters;
    const [added, rest] = await Promise.all([
      countText(text.slice(this.countedCharacters, end)),
      countText(text.slice(end)),
    ]);
    this.tokensBeforeGap += added;
    this.countedCharacters = end;
    this.tokens = this.tokensBeforeGap + rest;
    this.bytesAtCount = bytes;
  }
}
