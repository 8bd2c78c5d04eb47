/** Worker thread that counts tokens. Each task is small, so that the tasks of several accounts alternate. */
import { isTokenBoundary, splitForTokenizer } from './tokenizer.ts';

export type TokenEncoding = 'o200k_base' | 'cl100k_base';

export interface TokenCountTask {
  readonly encoding: TokenEncoding;
  readonly texts: readonly string[];
}

export interface TextTokens {
  readonly tokens: number;
  /** How often the text had to be split where a token may continue, which can add tokens. */
  readonly splits: number;
}

type Tokenizer = Pick<typeof import('gpt-tokenizer/encoding/o200k_base'), 'countTokens'>;

/** The tables of a tokenizer are loaded on first use, because loading is slow and they use much memory. */
const tokenizers: Record<TokenEncoding, () => Promise<Tokenizer>> = {
  o200k_base: () => import('gpt-tokenizer/encoding/o200k_base'),
  cl100k_base: () => import('gpt-tokenizer/encoding/cl100k_base'),
};

/** Counts the tokens of each text. Piscina calls this function. */
export default async function countTextTokens({ encoding, texts }: TokenCountTask): Promise<readonly TextTokens[]> {
  const tokenizer = await tokenizers[encoding]();
  return texts.map((text) => countWith(tokenizer, text));
}

function countWith({ countTokens }: Tokenizer, text: string): TextTokens {
  let [tokens, splits, end] = [0, 0, 0];
  for (const part of splitForTokenizer(text)) {
    end += part.length;
    if (end < text.length && !isTokenBoundary(text, end)) splits++;
    tokens += countTokens(part, { allowedSpecial: 'all' });
  }
  return { tokens, splits };
}
