/** Voices of text-to-speech models in the format of the data file. */
import { z } from 'zod';
import { text, texts } from './field-schemas.ts';
import { type Valid, validateNamedEntries } from './validation.ts';

/** The language of a voice that speaks all languages of its models. */
export const ANY_LANGUAGE = 'multi';

export const voices = z.array(
  z.strictObject({
    id: text.describe("The provider's id of the voice."),
    name: text,
    models: texts.describe('Ids of the models that support the voice. The first voice of a model is its default.'),
    language: text.describe('ISO 639-1, or `multi`.'),
    gender: z.enum(['feminine', 'masculine', 'neutral']),
    description: text,
  }),
  'must be a list of voices',
);

export type VoiceFile = Valid<typeof voices>[number];
export type Voice = Omit<VoiceFile, 'models'>;

/** @throws DataFileError with the voice and the field */
export function parseVoices(data: unknown): readonly VoiceFile[] {
  return validateNamedEntries(voices, data, 'voice', 'id');
}
