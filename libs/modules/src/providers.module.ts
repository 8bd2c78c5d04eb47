import { Module } from '@nestjs/common';
import { ChatUpstreams, EmbeddingUpstreams, WebSearch } from '#application';
import {
  AnthropicChat,
  DIALECTS,
  type Dialect,
  ExaSearch,
  NamedChatUpstreams,
  NamedEmbeddingUpstreams,
  OpenAiChat,
  OpenAiEmbeddings,
} from '#connectors';
import { Role } from './role.ts';

/** Anthropic wants a limit always; without one the answer may be as long as the smallest of its models makes it. */
const ANTHROPIC_MAX_TOKENS = 64_000;
/** A search takes a second or two; an answer waits for it. */
const SEARCH_TIMEOUT_MS = 15_000;

/** The vendors that models and searches are bought from, at their configured addresses. */
@Module({
  providers: [
    { provide: ChatUpstreams, inject: [Role], useFactory: openChat },
    { provide: EmbeddingUpstreams, inject: [Role], useFactory: openEmbeddings },
    { provide: WebSearch, inject: [Role], useFactory: openSearch },
  ],
  exports: [ChatUpstreams, EmbeddingUpstreams, WebSearch],
})
export class ProvidersModule {}

function openChat(role: Role): Promise<NamedChatUpstreams> {
  const { settings } = role;
  const { connectTimeoutMs, idleTimeoutMs } = settings;
  const openAi = (baseUrl: string, apiKey: string, dialect: Dialect) =>
    new OpenAiChat({ baseUrl, apiKey, connectTimeoutMs, idleTimeoutMs }, dialect);
  const upstreams = new NamedChatUpstreams({
    openai: openAi(settings.openaiBaseUrl, settings.openaiApiKey, DIALECTS.openai),
    anthropic: new AnthropicChat({
      baseUrl: settings.anthropicBaseUrl,
      apiKey: settings.anthropicApiKey,
      connectTimeoutMs,
      idleTimeoutMs,
      defaultMaxTokens: ANTHROPIC_MAX_TOKENS,
    }),
    openrouter: openAi(settings.openrouterBaseUrl, settings.openrouterApiKey, DIALECTS.openrouter),
    groq: openAi(settings.groqBaseUrl, settings.groqApiKey, DIALECTS.groq),
    deepinfra: openAi(settings.deepinfraBaseUrl, settings.deepinfraApiKey, DIALECTS.deepinfra),
  });
  return role.keep(upstreams);
}

function openEmbeddings(role: Role): Promise<NamedEmbeddingUpstreams> {
  const { settings } = role;
  const { connectTimeoutMs, idleTimeoutMs } = settings;
  const vectors = (baseUrl: string, apiKey: string) =>
    new OpenAiEmbeddings({ baseUrl, apiKey, connectTimeoutMs, idleTimeoutMs });
  const upstreams = new NamedEmbeddingUpstreams({
    openai: vectors(settings.openaiBaseUrl, settings.openaiApiKey),
    openrouter: vectors(settings.openrouterBaseUrl, settings.openrouterApiKey),
    deepinfra: vectors(settings.deepinfraBaseUrl, settings.deepinfraApiKey),
  });
  return role.keep(upstreams);
}

function openSearch(role: Role): Promise<ExaSearch> {
  const { exaBaseUrl: baseUrl, exaApiKey: apiKey, connectTimeoutMs } = role.settings;
  return role.keep(new ExaSearch({ baseUrl, apiKey, connectTimeoutMs, timeoutMs: SEARCH_TIMEOUT_MS }));
}
