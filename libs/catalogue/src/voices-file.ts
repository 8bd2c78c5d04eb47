/** Voices of text-to-speech models in the format of the data file. */
import {
  DataFileError,
  enumRule,
  findDuplicate,
  isText,
  objectRule,
  text,
  texts,
  toFieldLocation,
} from './validation-rules.ts';

/** The language of a voice that speaks all languages of its models. */
export const ANY_LANGUAGE = 'multi';

export interface VoiceFile {
  /** The provider's id of the voice. */
  readonly id: string;
  readonly name: string;
  /** Ids of the models that support the voice. The first voice of a model is its default. */
  readonly models: readonly string[];
  /** ISO 639-1, or `multi`. */
  readonly language: string;
  readonly gender: string;
  readonly description: string;
}

export type Voice = Omit<VoiceFile, 'models'>;

const voice = objectRule({
  id: text,
  name: text,
  models: texts,
  language: text,
  gender: enumRule(['feminine', 'masculine', 'neutral']),
  description: text,
});

/** @throws DataFileError with the path of the first mistake */
export function parseVoices(data: unknown): readonly VoiceFile[] {
  if (!Array.isArray(data)) throw new DataFileError('it must be a list of voices', []);
  for (const [i, entry] of data.entries())
    voice(entry, toFieldLocation(isText(entry?.id) ? `voice "${entry.id}"` : `voice ${i + 1}`, i));
  const twice = findDuplicate(data.map(({ id }) => id));
  if (twice) throw new DataFileError(`voice "${twice[0]}" is defined twice`, [twice[1], 'id']);
  return data;
}
