import { cp, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { CatalogueService } from '#application';
import { type Catalogue, getShippedCatalogueDir, readCatalogue } from '#catalogue';
import type { Log } from '#foundation';
import { CatalogueWatch } from './catalogue-watch.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-watch-'));
  await cp(getShippedCatalogueDir(), directory, { recursive: true });
});
afterAll(() => rm(directory, { recursive: true }));

test('a changed file with an error is reported once, with file, line and field, and is not applied', async () => {
  const messages: string[] = [];
  const replaced: Catalogue[] = [];
  const log = {
    error: ({ err }: { err: Error }) => messages.push(err.message),
    info: () => undefined,
  } as unknown as Log;
  const replace = async (next: Catalogue) => void replaced.push(next);
  const catalogues = { current: readCatalogue(), replace } as unknown as CatalogueService;
  const file = path.join(directory, 'audio.json');
  const good = await readFile(file, 'utf8');
  let later = Date.now() / 1_000;
  const write = async (content: string) => {
    await writeFile(file, content);
    later += 5;
    await utimes(file, later, later); // a different time even if the clock of the file system is coarse
  };

  const watch = new CatalogueWatch({ directory, read: () => readCatalogue(directory) }, catalogues, log);
  try {
    await write(good.replace('"usd": "0.1"', '"usd": 0.1'));
    const line = good.slice(0, good.indexOf('"usd": "0.1"')).split('\n').length;
    await watch.poll();
    await watch.poll();
    const field = 'endpoints[0].usdPerUnit.usd of model "eleven_multilingual_v2"';
    const must = 'must be an amount of USD as text, such as "0.25"';
    expect(messages).toEqual([`${file}:${line} cannot be used: ${field} ${must}`]);
    expect(replaced).toEqual([]);
    await write(good.replace('"usd": "0.1"', '"usd": "0.11"'));
    await watch.poll();
    expect(messages).toHaveLength(1);
    const prices = replaced.map(({ priceList }) => priceList.lines.find(({ of }) => of === 'eleven_multilingual_v2'));
    expect(prices).toMatchObject([{ prices: [{ unit: 'character', per: 1_000, cost: '110000000000' }] }]);
  } finally {
    await watch.close();
  }
});
