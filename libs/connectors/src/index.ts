export { AnthropicChat } from './anthropic/anthropic-chat.ts';
export { type ChatConnection, NamedChatUpstreams } from './chat-upstreams.ts';
export { ExaSearch } from './exa/exa-search.ts';
export { LndNode } from './lnd/lnd-node.ts';
export { DIALECTS, type Dialect } from './openai/dialect.ts';
export { OpenAiChat } from './openai/openai-chat.ts';
export { NamedEmbeddingUpstreams, OpenAiEmbeddings } from './openai/openai-embeddings.ts';
export { PostgresStoredResponses, storedResponseMigrations } from './postgres/stored-responses.ts';
export { coinbase, kraken, MarketRates } from './rates/market-rates.ts';
