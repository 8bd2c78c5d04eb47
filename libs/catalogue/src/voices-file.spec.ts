import { describe, expect, test } from '@jest/globals';
import { isMediaModel, readCatalogue } from '#catalogue';
import { parseVoices } from './voices-file.ts';

const VOICE = { id: 'v', name: 'V', models: ['m'], language: 'en', gender: 'neutral', description: 'A voice.' };

describe('the voices that ship', () => {
  const speakers = readCatalogue()
    .models.filter(isMediaModel)
    .filter(({ outputs }) => outputs.includes('speech'));

  test('are there for every model that speaks, the default one in English', () => {
    const first = speakers.map(({ id, voices: [voice] }) => [id, voice?.language]);
    expect(first.filter(([, language]) => language !== 'en' && language !== 'multi')).toEqual([]);
    expect(first).toHaveLength(6);
  });

  test('that speak every language are of models that list them', () => {
    const unlisted = speakers.filter(
      ({ voices, choices }) => voices.some(({ language }) => language === 'multi') && !choices?.language,
    );
    expect(unlisted).toEqual([]);
  });
});

describe('a file of voices', () => {
  test.each([
    ['is no list', {}, 'it must be a list of voices'],
    [
      'has a voice without models',
      [{ ...VOICE, models: [] }],
      'models of voice "v" must be a list with something in it',
    ],
    ['has a voice twice', [VOICE, VOICE], 'voice "v" is there twice'],
    ['has a field that is unknown', [{ ...VOICE, age: 3 }], 'voice "v" has an unknown field "age"'],
  ])('is refused that %s', (_, data, message) => {
    expect(() => parseVoices(data)).toThrow(message);
  });
});
