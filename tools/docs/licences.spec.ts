import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { formatLicenceTable, replaceSection } from './generated.ts';
import { isPermissive, listLicences } from './licences.ts';
import { ROOT, readPage } from './pages.ts';

const PAGE = 'docs/licences.md';
const licences = listLicences(JSON.parse(readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8')).packages);

test('every package of a production install has a permissive licence', () => {
  expect(licences.length).toBeGreaterThan(100);
  expect(licences.filter((licence) => !isPermissive(licence))).toEqual([]);
});

test('docs/licences.md lists them', () => {
  const page = replaceSection(readPage(PAGE), 'licences', formatLicenceTable(licences));
  if (process.env.DOCS === 'write') writeFileSync(path.join(ROOT, PAGE), page);
  else expect(readPage(PAGE)).toBe(page);
});

test.each([
  ['MIT', true],
  ['(BSD-3-Clause AND Apache-2.0)', true],
  ['GPL-3.0-only', false],
  ['AGPL-3.0-or-later', false],
  ['(MIT OR GPL-2.0)', false],
  ['SEE LICENSE IN LICENSE', false],
  ['', false],
])('whether %j is permissive: %j', (licence, expected) => {
  expect(isPermissive({ name: 'a', version: '1.0.0', licence })).toBe(expected);
});

test('development dependencies and folders of the project are not listed', () => {
  const packages = {
    '': { version: '1.2.0' },
    'node_modules/a': { version: '1.0.0', license: 'MIT' },
    'node_modules/a/node_modules/@x/b': { version: '2.0.0' },
    'node_modules/c': { version: '1.0.0', dev: true },
    'node_modules/d': { link: true },
  };
  expect(listLicences(packages)).toEqual([
    { name: '@x/b', version: '2.0.0', licence: '' },
    { name: 'a', version: '1.0.0', licence: 'MIT' },
  ]);
});
