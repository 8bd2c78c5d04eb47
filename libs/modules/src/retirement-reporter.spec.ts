import { describe, expect, test } from '@jest/globals';
import { Catalogue, parseModels } from '#catalogue';
import type { Log } from '#foundation';
import { createTestEndpoint, createTestModel } from '#testing';
import { RetirementReporter } from './retirement-reporter.ts';

const endpoint = (provider: string, overrides: object = {}) =>
  createTestEndpoint(provider, provider.toLowerCase(), overrides);
const MODELS = [
  createTestModel('test/old', [endpoint('OpenAI')], { retires: '2026-12-11', successor: 'test/new' }),
  createTestModel('test/shared', [endpoint('OpenAI', { retires: '2027-01-01' }), endpoint('Groq')]),
  createTestModel('test/elsewhere', [endpoint('Google')], { retires: '2026-12-11' }),
  createTestModel('test/new', [endpoint('OpenAI')]),
];
const CATALOGUE = Catalogue.fromFiles(parseModels(MODELS), { lists: { 'openai-sampling': [] } });

/** Returns the catalogue of a day in an installation without Google. */
const open = (day: string) =>
  CATALOGUE.onDay(day).withAvailableEndpoints({
    findMissingSetting: (upstream) => (upstream === 'google' ? 'GOOGLE_API_KEY' : undefined),
    isSimulated: () => false,
    hasZdrAgreement: () => false,
  });

function createReporter(day: string) {
  const lines: unknown[] = [];
  const catalogues = { current: open(day) };
  const log = { warn: (fields: object, text: string) => lines.push({ text, ...fields }) } as unknown as Log;
  const reporter = new RetirementReporter(catalogues, log);
  const reportOn = (next: string) => {
    catalogues.current = open(next);
    for (let i = 0; i < 3; i++) reporter.report();
    return lines.splice(0);
  };
  return { reportOn };
}

describe('the report of retirements', () => {
  const text = 'models of the catalogue retire within 30 days or have retired';
  const old = { model: 'test/old', day: '2026-12-11', successor: 'test/new' };
  const shared = { model: 'test/shared', endpoint: 'openai', day: '2027-01-01' };

  test('is one line per day, which names what is available here', () => {
    const { reportOn } = createReporter('2026-12-10');
    expect(reportOn('2026-12-10')).toEqual([{ text, retiring: [old, shared], retired: [] }]);
    expect(reportOn('2026-12-10')).toEqual([]);
    expect(reportOn('2026-12-11')).toEqual([{ text, retiring: [shared], retired: [old] }]);
  });

  test('is missing on a day without an end within 30 days', () => {
    expect(createReporter('2026-11-10').reportOn('2026-11-10')).toEqual([]);
  });
});
