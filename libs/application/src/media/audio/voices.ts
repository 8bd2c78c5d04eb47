/** Selects the model and the voice that speak a text. */
import { ANY_LANGUAGE, type Catalogue, type MediaModel, type Voice } from '#catalogue';
import { InvalidRequestError } from '../../errors.ts';
import { listAvailableAudioModels, resolveAudioModel, toPrimaryLanguage } from './audio-models.ts';

export const DEFAULT_SPEECH_MODEL = 'deepgram_aura_2';

/**
 * OpenAI's API requires a voice, so its clients send one of these. For a model without that voice, it counts as no
 * voice.
 */
const OPENAI_VOICES: ReadonlySet<string> = new Set(
  'alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar'.split(' '),
);

export interface VoicePreference {
  /** Id or name of the voice. */
  readonly voice?: string | undefined;
  readonly language?: string | undefined;
}

/**
 * Returns the default model, or the first one of the catalogue that speaks the language if the default model does not.
 * A language that no model speaks is left to `selectVoice`, which rejects it.
 * @throws InvalidRequestError if the default model would be used and is not offered
 */
export function selectDefaultSpeechModel(language: string | undefined, catalogue: Catalogue): MediaModel {
  const speakers =
    language === undefined
      ? []
      : listAvailableAudioModels(catalogue.models).filter((model) =>
          listLanguages(model).includes(toPrimaryLanguage(language)),
        );
  const isDefaultOrNone = speakers.length === 0 || speakers.some(({ id }) => id === DEFAULT_SPEECH_MODEL);
  return isDefaultOrNone ? resolveAudioModel(DEFAULT_SPEECH_MODEL, 'speech', catalogue) : (speakers[0] as MediaModel);
}

/**
 * Returns the requested voice, which must support the language. Without one, or for a voice of OpenAI's that the model
 * lacks, returns the first voice of the language, or of the model if no language is requested.
 * @throws InvalidRequestError 422 if the voice does not support the language, 400 if there is no such voice or language
 */
export function selectVoice(model: MediaModel, { voice, language }: VoicePreference): Voice {
  const requestedVoice = voice === undefined ? undefined : findVoice(model, voice);
  const primaryLanguage = language === undefined ? undefined : toPrimaryLanguage(language);
  if (requestedVoice && primaryLanguage !== undefined && !supportsLanguage(model, requestedVoice, primaryLanguage)) {
    const message = `The voice "${requestedVoice.id}" does not speak "${language}"; GET /v1/audio/models lists the languages of each model, and GET /v1/audio/voices its voices`;
    throw new InvalidRequestError(422, message, 'voice');
  }
  const selected =
    requestedVoice ??
    model.voices.find(
      (candidate) => primaryLanguage === undefined || supportsLanguage(model, candidate, primaryLanguage),
    );
  if (selected) return selected;
  if (primaryLanguage === undefined)
    throw new InvalidRequestError(400, `The model "${model.id}" has no voices`, 'model');
  throw new InvalidRequestError(
    400,
    `language must be one of ${listLanguages(model).join(', ')} for this model`,
    'language',
  );
}

function supportsLanguage({ choices }: MediaModel, voice: Voice, language: string): boolean {
  if (voice.language !== ANY_LANGUAGE) return voice.language === language;
  return choices?.language?.includes(language) ?? false;
}

/** Whether the list of a language has a voice: it speaks this language, or several. */
export function isListedForLanguage(voice: Voice, language: string): boolean {
  return [toPrimaryLanguage(language), ANY_LANGUAGE].includes(voice.language);
}

/** Returns all languages for which a model has a voice. Transcription models have no voices. */
export function listLanguages({ voices, choices }: MediaModel): readonly string[] {
  const languages = voices.flatMap(({ language }) =>
    language === ANY_LANGUAGE ? (choices?.language ?? []) : [language],
  );
  return [...new Set(languages)];
}

/**
 * @returns undefined for a voice of OpenAI's that the model does not have
 * @throws InvalidRequestError for another unknown voice
 */
function findVoice({ id, voices }: MediaModel, name: string): Voice | undefined {
  const lower = name.toLowerCase();
  const match = voices.find((voice) => voice.id === name) ?? voices.find((voice) => voice.name.toLowerCase() === lower);
  if (match || OPENAI_VOICES.has(lower)) return match;
  throw new InvalidRequestError(
    400,
    `The model "${id}" has no voice "${name.slice(0, 100)}"; GET /v1/audio/voices lists its voices, with the model_id "${id}"`,
    'voice',
  );
}
