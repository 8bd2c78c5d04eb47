/** The voice that a text is spoken with. */
import { ANY_LANGUAGE, type MediaModel, type Voice } from '#catalogue';
import { InvalidRequestError } from '../../errors.ts';
import { toPrimaryLanguage } from './audio-models.ts';

/** OpenAI's clients always send one of these. With models of other vendors they stand for the default voice. */
const OPENAI_VOICES: ReadonlySet<string> = new Set(
  'alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar'.split(' '),
);

export interface VoicePreference {
  /** Its id or its name. */
  readonly voice?: string | undefined;
  readonly language?: string | undefined;
}

/**
 * The voice that is named, which must speak the language; or the first one that does; or the model's default.
 * @throws InvalidRequestError 422 when voice and language do not fit, 400 when there is no such voice or language
 */
export function selectVoice(model: MediaModel, { voice, language }: VoicePreference): Voice {
  const requestedVoice = voice === undefined ? undefined : findVoice(model, voice);
  const primaryLanguage = language === undefined ? undefined : toPrimaryLanguage(language);
  if (requestedVoice && primaryLanguage !== undefined && !supportsLanguage(model, requestedVoice, primaryLanguage)) {
    const message = `The voice "${requestedVoice.id}" does not speak "${language}"; GET /v1/audio/voices?language=${primaryLanguage} lists those that do`;
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

export function supportsLanguage({ choices }: MediaModel, voice: Voice, language: string): boolean {
  if (voice.language !== ANY_LANGUAGE) return voice.language === language;
  return choices?.language?.includes(language) ?? false;
}

/** All languages that a model has a voice for. */
export function listLanguages({ voices, choices }: MediaModel): readonly string[] {
  const languages = voices.flatMap(({ language }) =>
    language === ANY_LANGUAGE ? (choices?.language ?? []) : [language],
  );
  return [...new Set(languages)];
}

/** Undefined for a name of OpenAI's that is none here. */
function findVoice({ id, voices }: MediaModel, name: string): Voice | undefined {
  const lower = name.toLowerCase();
  const match = voices.find((voice) => voice.id === name) ?? voices.find((voice) => voice.name.toLowerCase() === lower);
  if (match || OPENAI_VOICES.has(lower)) return match;
  throw new InvalidRequestError(
    400,
    `The model "${id}" has no voice "${name.slice(0, 100)}"; GET /v1/audio/voices lists its voices`,
    'voice',
  );
}
