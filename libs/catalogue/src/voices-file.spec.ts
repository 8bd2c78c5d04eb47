import { describe, expect, test } from '@jest/globals';
import { isMediaModel, readCatalogue } from '#catalogue';
import { parseVoices } from './voices-file.ts';

const VOICE = { id: 'v', name: 'V', models: ['m'], language: 'en', gender: 'neutral', description: 'A voice.' };

describe('the shipped voices', () => {
  const speakers = readCatalogue()
    .models.filter(isMediaModel)
    .filter(({ outputs }) => outputs.includes('speech'));

  test('have a default voice that is English or multilingual for every text-to-speech model', () => {
    const first = speakers.map(({ id, voices: [voice] }) => [id, voice?.language]);
    expect(first.filter(([, language]) => language !== 'en' && language !== 'multi')).toEqual([]);
    expect(first).toHaveLength(6);
  });

  test('include multilingual voices only for models that list languages', () => {
    const unlisted = speakers.filter(
      ({ voices, choices }) => voices.some(({ language }) => language === 'multi') && !choices?.language,
    );
    expect(unlisted).toEqual([]);
  });
});

describe('a file of voices', () => {
  test.each([
    ['is not a list', {}, 'it must be a list of voices'],
    ['has a voice without models', [{ ...VOICE, models: [] }], 'models of voice "v" must be a non-empty list'],
    ['has a duplicate voice', [VOICE, VOICE], 'voice "v" is defined twice'],
    ['has an unknown field', [{ ...VOICE, age: 3 }], 'voice "v" has an unknown field "age"'],
  ])('is rejected if it %s', (_, data, message) => {
    expect(() => parseVoices(data)).toThrow(message);
  });
});
