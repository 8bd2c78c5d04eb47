import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { getShippedCatalogueDir, readCatalogue } from '#catalogue';
import { createSmallCatalogue, createTestEndpoint, createTestModel, TEST_DAY } from '#testing';
import { runCatalogueCommand } from './command-line.ts';

const BUILT = path.resolve(import.meta.dirname, '../../../dist/apps/catalogue/src/main.js');

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-check-'));
  await cp(getShippedCatalogueDir(), directory, { recursive: true });
});
afterAll(() => rm(directory, { recursive: true }));

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command in this process. */
async function run(...args: readonly string[]): Promise<Ended> {
  const { exitCode, stdout, stderr } = await runCatalogueCommand(args, {});
  return { code: exitCode, out: stdout, err: stderr };
}

/** Runs a command with the built program, and with one configured provider, which has no list of models. */
function runBuilt(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [BUILT, ...args], { env: { EXA_API_KEY: 'key' } }, (error, out, err) =>
      resolve({ code: Number(error?.code ?? 0), out, err }),
    );
  });
}

test('check prints the size and the price list version of a valid catalogue', async () => {
  const { models, dataEndpoints, priceList } = readCatalogue();
  const out = `${models.length} models, ${dataEndpoints.length} lookups, price list ${priceList.version}\n`;
  for (const place of [[], [directory]]) {
    const { code, out: printed, err } = await run('check', '--day', TEST_DAY, ...place);
    expect([code, printed, err.replaceAll(/^warning: .*\n/gm, '')]).toEqual([0, out, '']);
  }
});

test('the built program prints results to stdout, warnings and problems to stderr, and ends with the exit code', async () => {
  const own = await mkdtemp(path.join(tmpdir(), 'countinghouse-built-'));
  const endpoints = [createTestEndpoint('OpenAI', 'openai')];
  await createSmallCatalogue(own, [
    createTestModel('test/old', endpoints, { retires: '2026-12-11' }),
    createTestModel('test/new', endpoints, { retires: '2026-12-30' }),
  ]);
  const { code, out, err } = await runBuilt('check', '--live', '--day', '2026-12-11', own);
  expect([code, out.split('\n').slice(1, 3), err.split('\n')]).toEqual([
    1,
    ['openai: skipped; OPENAI_API_KEY is not set', 'anthropic: skipped; ANTHROPIC_API_KEY is not set'],
    [
      expect.stringMatching(/^warning: model "test\/new" retires /),
      expect.stringMatching(/^model "test\/old" was retired /),
      '',
    ],
  ]);
  await rm(own, { recursive: true });
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

test('check reports all mistakes of a file, one per line', async () => {
  const own = await mkdtemp(path.join(tmpdir(), 'countinghouse-mistakes-'));
  const endpoints = [createTestEndpoint('OpenAI', 'openai', { margin: 1 })];
  await createSmallCatalogue(own, [createTestModel('test/model', endpoints, { popularity: 1 })]);
  const { code, err } = await run('check', own);
  expect([code, err.split('\n')]).toEqual([
    1,
    [
      expect.stringMatching(/:1 cannot be used: endpoints\[0\]\.margin of model "test\/model" must be a factor /),
      expect.stringMatching(/:1 cannot be used: model "test\/model" has an unknown field "popularity"$/),
      '',
    ],
  ]);
  await rm(own, { recursive: true });
});

test('check reports an example that its own lookup rejects', async () => {
  const own = await mkdtemp(path.join(tmpdir(), 'countinghouse-example-'));
  await cp(getShippedCatalogueDir(), own, { recursive: true });
  const file = path.join(own, 'data-endpoints.json');
  await writeFile(file, (await readFile(file, 'utf8')).replace('"numResults": 5', '"numResults": 11'));
  const { code, err } = await run('check', '--day', TEST_DAY, own);
  expect([code, err]).toEqual([
    1,
    expect.stringMatching(/^example of data endpoint "web\/search" is rejected: numResults /),
  ]);
  await rm(own, { recursive: true });
});

describe('the check of a catalogue with ends', () => {
  const openai = (overrides: object = {}) => createTestEndpoint('OpenAI', 'openai', overrides);
  const groq = createTestEndpoint('Groq', 'groq');
  let own: string;
  beforeAll(async () => {
    own = await mkdtemp(path.join(tmpdir(), 'countinghouse-ends-'));
    await createSmallCatalogue(own, [
      createTestModel('test/old', [openai()], { retires: '2026-12-11', successor: 'test/new' }),
      createTestModel('test/last', [openai()], { retires: '2026-12-20' }),
      createTestModel('test/shared', [openai({ retires: '2026-12-30' }), groq]),
      createTestModel('test/new', [openai()]),
    ]);
  });
  afterAll(() => rm(own, { recursive: true }));

  const check = async (day: string) => {
    const { code, err } = await run('check', '--day', day, own);
    return [code, ...err.split('\n').slice(0, -1)];
  };

  test('warns from 30 days before', async () => {
    expect(await check('2026-11-10')).toEqual([0]);
    expect(await check('2026-12-10')).toEqual([
      0,
      'warning: model "test/old" retires on 2026-12-11; its successor is "test/new"',
      'warning: model "test/last" retires on 2026-12-20 and has no successor that is sold',
      'warning: endpoint "openai" of model "test/shared" retires on 2026-12-30',
    ]);
  });

  test('fails when a model that names no successor has retired', async () => {
    expect(await check('2026-12-30')).toEqual([
      1,
      'warning: model "test/old" was retired on 2026-12-11; requests for it get 410 and "test/new"',
      'warning: endpoint "openai" of model "test/shared" was retired on 2026-12-30; other endpoints serve the model',
      'model "test/last" was retired on 2026-12-20: name a successor that is sold, or remove the model',
    ]);
  });

  test('rejects a day that does not exist', async () => {
    expect(await check('2027-02-29')).toEqual([1, '--day must be a date, such as 2027-02-01']);
  });
});

describe('the import of a list of models', () => {
  let own: string;
  beforeAll(async () => {
    own = await mkdtemp(path.join(tmpdir(), 'countinghouse-import-'));
    await createSmallCatalogue(own, [
      createTestModel('test/known', [createTestEndpoint('Groq', 'groq', { model: 'known' })]),
    ]);
  });
  afterAll(() => rm(own, { recursive: true }));

  const importList = async (from: string, content: string, ...args: readonly string[]) => {
    const file = path.join(own, 'list.txt');
    await writeFile(file, content);
    const { code, out, err } = await run(
      'import',
      '--from',
      from,
      '--day',
      TEST_DAY,
      '--catalogue',
      own,
      ...args,
      file,
    );
    return { code, out, err: err.replaceAll(own, '') };
  };

  test('prints the differences to a catalogue', async () => {
    const list = JSON.stringify({ data: [{ id: 'known' }, { id: 'other' }] });
    const { code, out, err } = await importList('groq', list);
    expect([code, err, out.split('\n')[0]]).toEqual([0, '', 'new: "other"']);
    expect(out).not.toContain('"known"');
  });

  test('prints the entries of models at OpenRouter on request', async () => {
    const row = { id: 'vendor/model', pricing: { prompt: '0.000003', completion: '0.000015' } };
    const { code, out } = await importList('openrouter', JSON.stringify({ data: [row] }), '--entries');
    expect([code, JSON.parse(out)]).toMatchObject([0, [{ id: 'vendor/model' }]]);
  });

  test('prints no text of the list that a terminal would execute', async () => {
    const pricing = { prompt: '0.000003', completion: '0.000015' };
    const name = 'Red \u009b31m\u202e';
    const rows = [
      { id: 'vendor/model', name, pricing },
      { id: '\u001b[2J\nvendor/other: sold', pricing },
    ];
    const { code, out, err } = await importList('openrouter', JSON.stringify({ data: rows }), '--entries');
    expect([code, JSON.parse(out)]).toMatchObject([0, [{ name }]]);
    expect(out + err).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
    expect(err).toBe('1 models\nskipped: a row: it has no id of printable ASCII characters\n');
  });

  test.each([
    ['openai', 'no list', /^\/list\.txt is not JSON: /],
    ['openai', '{}', /^it must be the list of models of openai, with 1 to 10000 rows in "data"\n$/],
    ['nobody', '{}', /^the list of nobody cannot be read; use openai, /],
    ['constructor', '{}', /^the list of constructor cannot be read; use openai, /],
    ['openai', '\u001b[2J', /^\/list\.txt is not JSON: [ -~]*\n$/],
  ])('rejects what is not a list: %s %j', async (from, content, message) => {
    expect(await importList(from, content)).toEqual({ code: 1, out: '', err: expect.stringMatching(message) });
  });
});
