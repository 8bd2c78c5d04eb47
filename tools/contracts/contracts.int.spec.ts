import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { formatComment, generateContracts, getInstalledSource, SCHEMAS_DIR } from './generate.ts';
import { SPEECH_SDKS } from './speech-sdks.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** `npm run prove:contracts` compares these with their SDKs, which are not installed here. */
const SPEECH = ['deepgram', 'elevenlabs'];

const readSchemas = (provider: string) => readFileSync(path.join(ROOT, SCHEMAS_DIR, `${provider}.json`), 'utf8');

test('the schemas agree with the types of the installed SDKs (otherwise run `npm run contracts`)', () => {
  const generated = generateContracts(getInstalledSource(ROOT));
  const files = readdirSync(path.join(ROOT, SCHEMAS_DIR));
  expect(files.sort()).toEqual([...generated.keys(), ...SPEECH].map((provider) => `${provider}.json`).sort());
  for (const [provider, content] of generated)
    expect([provider, readSchemas(provider) === content]).toEqual([provider, true]);
});

test.each(SPEECH)('the schemas of %s name the versions of the SDKs (otherwise run `npm run contracts`)', (provider) => {
  expect(readSchemas(provider)).toContain(formatComment(SPEECH_SDKS));
});
