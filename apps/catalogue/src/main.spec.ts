import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { getShippedCatalogueDir, readCatalogue } from '#catalogue';

const BUILT = path.resolve(import.meta.dirname, '../../../dist/apps/catalogue/src/main.js');

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-check-'));
  await cp(getShippedCatalogueDir(), directory, { recursive: true });
});
afterAll(() => rm(directory, { recursive: true }));

function run(
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [BUILT, ...args], (error, out, err) =>
      resolve({ code: Number(error?.code ?? 0), out, err }),
    );
  });
}

test('check prints the size and the price list version of a valid catalogue', async () => {
  const { models, dataEndpoints, priceList } = readCatalogue();
  const out = `${models.length} models, ${dataEndpoints.length} lookups, price list ${priceList.version}\n`;
  expect(await run('check')).toEqual({ code: 0, out, err: '' });
  expect(await run('check', directory)).toEqual({ code: 0, out, err: '' });
});

test('check reports a mistake with its file, line and field', async () => {
  const file = path.join(directory, 'images.json');
  const good = await readFile(file, 'utf8');
  const line = good.slice(0, good.indexOf('"margin"')).split('\n').length;
  await writeFile(file, good.replace('"margin": "1.15"', '"margin": "15%"'));
  const field = 'endpoints[0].margin of model "openai/gpt-image-2"';
  const err = `${file}:${line} cannot be used: ${field} must be a factor as text, such as "1.055"\n`;
  expect(await run('check', directory)).toEqual({ code: 1, out: '', err });
});

test('check reports an example that its own lookup rejects', async () => {
  const own = await mkdtemp(path.join(tmpdir(), 'countinghouse-example-'));
  await cp(getShippedCatalogueDir(), own, { recursive: true });
  const file = path.join(own, 'data-endpoints.json');
  await writeFile(file, (await readFile(file, 'utf8')).replace('"numResults": 5', '"numResults": 11'));
  const { code, err } = await run('check', own);
  expect([code, err]).toEqual([
    1,
    expect.stringMatching(/^example of data endpoint "web\/search" is rejected: numResults /),
  ]);
  await rm(own, { recursive: true });
});
