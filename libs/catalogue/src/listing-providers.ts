/** The providers whose formats of lists of models can be read. */
export const LISTING_PROVIDERS = ['openai', 'anthropic', 'groq', 'deepinfra', 'google', 'openrouter'] as const;
export type ListingProvider = (typeof LISTING_PROVIDERS)[number];
