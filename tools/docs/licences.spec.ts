import { expect, test } from '@jest/globals';
import { expectSection } from './expect-page.ts';
import { formatLicenceTable } from './generated.ts';
import { isPermissive, listLicences } from './licences.ts';
import { readPage } from './pages.ts';

const licences = listLicences(JSON.parse(readPage('package-lock.json')).packages);

test('every package of a production install has a permissive licence', () => {
  expect(licences.length).toBeGreaterThan(100);
  expect(licences.filter((licence) => !isPermissive(licence))).toEqual([]);
});

test('docs/licences.md lists them', () => {
  expectSection('docs/licences.md', 'licences', formatLicenceTable(licences));
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
