/** The lists of models of the providers with OpenAI's API, each with the fields of its provider. */
import { formatUsd, toPicoUsd } from '#kernel';
import type { SandboxPrice } from '../provider/model.ts';
import type { Call, Routes } from '../router.ts';
import { SPEECH_MODELS } from './audio/speech.ts';
import { TRANSCRIPTION_MODELS } from './audio/transcriptions.ts';
import { EMBEDDING_MODELS } from './embeddings/embedding-models.ts';
import { assertKey } from './errors.ts';
import { IMAGE_MODELS } from './images/image-offers.ts';
import { findModel, type OpenAiProvider } from './models.ts';

interface ListedModel {
  readonly id: string;
  readonly outputs: 'text' | 'image' | 'embeddings' | 'audio';
  readonly context?: number;
  readonly maxOutput?: number;
  readonly price?: SandboxPrice;
}

/** 2024-07-18. The API requires a date; nothing depends on its value. */
const CREATED = 1_721_260_800;

/** Announced ends by model, of the providers that list them. The sandbox serves the models after their ends too. */
const ENDS: Readonly<Record<string, string>> = {
  'gpt-5-codex': '2026-07-23',
  'gpt-image-1.5': '2026-12-01',
  'gpt-image-1-mini': '2026-12-01',
  'gpt-5': '2026-12-11',
  'gpt-5-mini': '2026-12-11',
  'gpt-5-nano': '2026-12-11',
  o3: '2026-12-11',
  'tts-1': '2027-01-06',
  'tts-1-hd': '2027-01-06',
  'gpt-4.1': '2027-01-14',
  'gpt-4.1-mini': '2027-01-14',
  'gpt-4o': '2027-01-14',
  'gpt-4o-mini': '2027-01-14',
  'whisper-1': '2027-02-26',
  'gpt-5.1': '2027-04-01',
  'gpt-5.4-nano': '2027-04-01',
  'z-ai/glm-4.5-air:free': '2026-07-02',
  'google/gemini-2.5-pro': '2026-12-01',
  'google/gemini-2.5-flash': '2026-12-01',
};

const formatPrice = (price = 0n) => formatUsd(toPicoUsd(price));
const toUsdPerMillion = (price: bigint) => Number(formatPrice(price * 1_000_000n));

/** The fields that a provider adds to OpenAI's. */
const LISTED_FIELDS: Readonly<Record<string, (model: ListedModel) => object>> = {
  openai: ({ id }) => ({ shutdown_date: ENDS[id] ?? null }),
  openrouter: ({ id, outputs, context, maxOutput, price }) => ({
    canonical_slug: id,
    name: id,
    context_length: context ?? null,
    architecture: { modality: `text->${outputs}`, input_modalities: ['text'], output_modalities: [outputs] },
    pricing: {
      prompt: formatPrice(price?.input),
      completion: formatPrice(price?.output),
      input_cache_read: formatPrice(price?.cachedInput),
      request: formatPrice(price?.request),
    },
    top_provider: { context_length: context ?? null, max_completion_tokens: maxOutput ?? null, is_moderated: false },
    per_request_limits: null,
    expiration_date: ENDS[id] ?? null,
  }),
  groq: ({ context, maxOutput }) => ({
    active: true,
    context_window: context,
    max_completion_tokens: maxOutput,
    public_apps: null,
  }),
  deepinfra: ({ outputs, context, maxOutput, price }) => ({
    metadata: {
      ...(outputs === 'text' ? { context_length: context, max_tokens: maxOutput } : {}),
      tags: [outputs === 'text' ? 'chat' : outputs],
      pricing: price
        ? {
            input_tokens: toUsdPerMillion(price.input),
            output_tokens: toUsdPerMillion(price.output),
            cache_read_tokens: toUsdPerMillion(price.cachedInput),
          }
        : {},
    },
  }),
};

export function modelRoutes(provider: OpenAiProvider): Routes {
  const otherModels = listOtherModels(provider.name);
  const models = [
    ...[...provider.models.values()].map((model) => ({ ...model, outputs: 'text' as const })),
    ...otherModels,
  ];
  const toModelJson = (model: ListedModel) => ({
    id: model.id,
    object: 'model',
    created: CREATED,
    owned_by: 'system',
    ...LISTED_FIELDS[provider.name]?.(model),
  });
  return {
    [`GET /${provider.name}/v1/models`]: (call: Call) => {
      assertKey(call);
      // OpenRouter lists only models with text output unless others are requested.
      const modality = provider.name === 'openrouter' ? (call.query.get('output_modalities') ?? 'text') : 'all';
      const published = models.filter(({ outputs }) => modality === 'all' || modality.split(',').includes(outputs));
      call.sendJson(200, { object: 'list', data: published.map(toModelJson) });
    },
    [`GET /${provider.name}/v1/models/:id`]: (call: Call) => {
      assertKey(call);
      const { parameter: id } = call;
      const model = otherModels.find((candidate) => candidate.id === id);
      call.sendJson(200, toModelJson(model ?? { ...findModel(provider, id), outputs: 'text' }));
    },
  } as Routes;
}

/** Returns the models of a provider that are not chat models. */
function listOtherModels(provider: string): readonly ListedModel[] {
  const embeddings = EMBEDDING_MODELS[provider] ?? [];
  const images = IMAGE_MODELS[provider] ?? [];
  const audio = provider === 'openai' ? Object.keys({ ...SPEECH_MODELS, ...TRANSCRIPTION_MODELS }) : [];
  return [
    ...embeddings.map(({ id, context, price }) => ({ id, context, price, outputs: 'embeddings' as const })),
    ...images.map(({ id }) => ({ id, outputs: 'image' as const })),
    ...audio.map((id) => ({ id, outputs: 'audio' as const })),
  ];
}
