/** What those who speak OpenAI's chat completions say differently. */

/** How an upstream wants to be told a few things. */
export interface Dialect {
  /** The most output: OpenAI's present name, or its former one, which many who copy it know alone. */
  readonly limit: 'max_completion_tokens' | 'max_tokens';
}

export const DIALECTS = {
  /** https://platform.openai.com/docs/api-reference/chat/create: models that reason refuse `max_tokens`. */
  openai: { limit: 'max_completion_tokens' },
  /** https://console.groq.com/docs/api-reference#chat-create: `max_tokens` is deprecated. */
  groq: { limit: 'max_completion_tokens' },
  /** https://openrouter.ai/docs/api-reference/parameters */
  openrouter: { limit: 'max_tokens' },
  /** https://deepinfra.com/docs/openai_api */
  deepinfra: { limit: 'max_tokens' },
} as const satisfies Readonly<Record<string, Dialect>>;

type Body = Readonly<Record<string, unknown>>;

/** A request with OpenAI's present names in the words of an upstream; itself, where nothing has to be said differently. */
export function inDialect(body: Body, { limit }: Dialect): Body {
  const { max_completion_tokens } = body;
  if (max_completion_tokens === undefined || limit === 'max_completion_tokens') return body;
  const { max_completion_tokens: _, ...rest } = body;
  return { ...rest, [limit]: max_completion_tokens };
}
