/** The models and voices that ElevenLabs lists. */
import type { Call, Routes } from '../../router.ts';
import { assertKey } from './errors.ts';

export interface ElevenLabsModel {
  /** Credits per character. */
  readonly credits: number;
  /** Maximum characters of one text. */
  readonly maxCharacters: number;
  /** Whether the request may state the language of the text. */
  readonly supportsLanguage: boolean;
}

/** USD for 1,000 credits. */
export const CREDIT_USD = '0.10';

export const MODELS: Readonly<Record<string, ElevenLabsModel>> = {
  eleven_multilingual_v2: { credits: 1, maxCharacters: 10_000, supportsLanguage: false },
  eleven_flash_v2_5: { credits: 0.5, maxCharacters: 40_000, supportsLanguage: true },
  eleven_v3: { credits: 1, maxCharacters: 5_000, supportsLanguage: true },
};

const VOICES = [
  ['21m00Tcm4TlvDq8ikWAM', 'Rachel', 'female'],
  ['JBFqnCBsd6RMkjVDRZzb', 'George', 'male'],
  ['9BWtsMINqrJLrRacOk9x', 'Aria', 'female'],
  ['CwhRBWXzGAHq8TQ4Fs17', 'Roger', 'male'],
  ['EXAVITQu4vr4xnSDxMaL', 'Sarah', 'female'],
  ['onwK4e9ZLuTAKqWW03F9', 'Daniel', 'male'],
] as const;
const PAGE = 10;

export function voicesRoutes(): Routes {
  const all = VOICES.map(([voice_id, name, gender]) => ({
    voice_id,
    name,
    category: 'premade',
    labels: { gender, language: 'en' },
    description: `${name} speaks English.`,
    preview_url: null,
    settings: null,
    verified_languages: [{ language: 'en', model_id: 'eleven_multilingual_v2' }],
  }));
  return {
    'GET /elevenlabs/v1/voices': (call) => {
      assertKey(call);
      call.sendJson(200, { voices: all });
    },
    'GET /elevenlabs/v2/voices': (call) => sendVoicesPage(call, all),
    'GET /elevenlabs/v1/models': (call) => {
      assertKey(call);
      call.sendJson(200, Object.entries(MODELS).map(toModelJson));
    },
  };
}

function sendVoicesPage(call: Call, all: readonly object[]): void {
  assertKey(call);
  const size = Number(call.query.get('page_size') ?? PAGE);
  const from = Number(call.query.get('next_page_token') ?? 0);
  const has_more = from + size < all.length;
  const next_page_token = has_more ? String(from + size) : null;
  call.sendJson(200, { voices: all.slice(from, from + size), has_more, total_count: all.length, next_page_token });
}

function toModelJson([model_id, { credits, maxCharacters }]: readonly [string, ElevenLabsModel]) {
  return {
    model_id,
    name: model_id,
    can_be_finetuned: false,
    can_do_text_to_speech: true,
    can_do_voice_conversion: false,
    can_use_style: true,
    can_use_speaker_boost: true,
    serves_pro_voices: false,
    token_cost_factor: 1,
    description: 'Simulated.',
    requires_alpha_access: false,
    max_characters_request_free_user: Math.min(maxCharacters, 2_500),
    max_characters_request_subscribed_user: maxCharacters,
    maximum_text_length_per_request: maxCharacters,
    languages: ['en', 'de', 'fr', 'es', 'it', 'pt'].map((language_id) => ({ language_id, name: language_id })),
    model_rates: { character_cost_multiplier: credits },
    concurrency_group: 'standard',
  };
}
