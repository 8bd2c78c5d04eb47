export { LndNode } from './payments/lnd/lnd-node.ts';
export { PostgresStoredResponses, storedResponseMigrations } from './postgres/stored-responses.ts';
export { AnthropicChat } from './providers/anthropic/anthropic-chat.ts';
export { type ChatConnection, NamedChatUpstreams } from './providers/chat-upstreams.ts';
export { ExaSearch } from './providers/exa/exa-search.ts';
export { DIALECTS, type Dialect } from './providers/openai/dialect.ts';
export { OpenAiChat } from './providers/openai/openai-chat.ts';
export { NamedEmbeddingUpstreams, OpenAiEmbeddings } from './providers/openai/openai-embeddings.ts';
export { coinbase, kraken, MarketRates } from './rates/market-rates.ts';
