/** How the responses of providers with OpenAI's API differ from OpenAI's, by the types of their SDKs. */

/** Fields of OpenAI's responses that other providers may lack. */
export type OpenAiField =
  | 'refusal'
  | 'service_tier of chunks'
  /** A `usage` that is null, in each chunk before the one with the usage. */
  | 'null usage'
  /** In the usage, tokens of audio and of predictions. */
  | 'audio and prediction tokens'
  /** Padding of chunks. */
  | 'obfuscation';

export interface ResponseFields {
  readonly lacks: ReadonlySet<OpenAiField>;
  /** The field that contains the model's reasoning; undefined if the provider returns none. */
  readonly reasoning: 'reasoning' | 'reasoning_content' | undefined;
  /** The field of the usage that contains the cost of the request in USD; undefined if the provider reports none. */
  readonly cost: 'cost' | 'estimated_cost' | undefined;
  /** What else the provider adds: a router names the provider that it has called, and Groq has `x_groq`. */
  readonly added: 'provider' | 'x_groq' | undefined;
  /** Whether a completion of a model without a fingerprint has a null instead of no `system_fingerprint`. */
  readonly hasNullFingerprint: boolean;
}

export const OPENAI_FIELDS: ResponseFields = {
  lacks: new Set(),
  reasoning: undefined,
  cost: undefined,
  added: undefined,
  hasNullFingerprint: false,
};

export const OPENROUTER_FIELDS: ResponseFields = {
  lacks: new Set(['null usage', 'obfuscation']),
  reasoning: 'reasoning',
  cost: 'cost',
  added: 'provider',
  hasNullFingerprint: true,
};

export const GROQ_FIELDS: ResponseFields = {
  ...OPENAI_FIELDS,
  lacks: new Set(['refusal', 'service_tier of chunks', 'null usage', 'audio and prediction tokens', 'obfuscation']),
  reasoning: 'reasoning',
  added: 'x_groq',
};

/** Servers of open-weight models do not pad their chunks. */
export const OPEN_WEIGHT_FIELDS: ResponseFields = {
  ...OPENAI_FIELDS,
  lacks: new Set(['obfuscation']),
  reasoning: 'reasoning_content',
};
