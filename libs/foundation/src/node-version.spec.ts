import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { isSupportedNode } from '#foundation/node-version';

const ROOT = path.resolve(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const { engines, scripts } = JSON.parse(read('package.json'));
const programs = new Set(
  [
    ...Object.values(scripts)
      .join('\n')
      .matchAll(/dist\/(apps\/\S+)\.js/g),
  ].map(([, program]) => `${program}.ts`),
);

test.each([
  ['20.20.2', false],
  ['22.22.2', false],
  ['24.14.1', false],
  ['24.15.0', true],
  ['24.21.0', true],
  ['25.9.0', false],
  ['26.0.0', true],
  ['28.1.0', true],
])('Node %s is supported: %s; the installation decides alike', async (version, isSupported) => {
  const installation = await import(path.join(ROOT, 'tools/node/install.mjs'));
  expect([isSupportedNode(version), installation.isSupported(version)]).toEqual([isSupported, isSupported]);
});

test('package.json states the supported versions', () => {
  expect(engines.node).toBe('^24.15.0 || >=26.0.0');
});

test('the pinned versions of Node are supported', () => {
  const { optionalDependencies } = JSON.parse(read('tools/node/package.json'));
  const versions = Object.values(optionalDependencies) as string[];
  expect(versions.filter((version) => !isSupportedNode(version))).toEqual([]);
  expect(versions).toHaveLength(4);
});

describe.each([...programs])('%s', (program) => {
  test('checks the version of Node before it imports anything else', () => {
    expect(read(program)).toMatch(/^(\/\*\*.*?\*\/\s*|\/\/.*\n)*import '#foundation\/node-version';\n/s);
  });
});
