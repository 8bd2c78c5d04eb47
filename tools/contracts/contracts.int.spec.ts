import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { generateContracts, SCHEMAS_DIR } from './generate.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

test('the schemas agree with the types of the installed SDKs (otherwise run `npm run contracts`)', () => {
  const generated = generateContracts(ROOT);
  const files = readdirSync(path.join(ROOT, SCHEMAS_DIR));
  expect(files.sort()).toEqual([...generated.keys()].map((provider) => `${provider}.json`).sort());
  for (const [provider, content] of generated) {
    const stored = readFileSync(path.join(ROOT, SCHEMAS_DIR, `${provider}.json`), 'utf8');
    expect([provider, stored === content]).toEqual([provider, true]);
  }
});
