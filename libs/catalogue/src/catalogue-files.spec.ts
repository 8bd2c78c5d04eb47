import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { getShippedCatalogueDir, readCatalogue, readProviders } from '#catalogue';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-lines-'));
  made.push(directory);
  await writeFile(path.join(directory, 'parameters.json'), '{\n  "few": ["max_tokens"]\n}\n');
  await writeFile(path.join(directory, 'fees.json'), '[]\n');
});
const made: string[] = [];
afterAll(() => Promise.all(made.map((each) => rm(each, { recursive: true }))));

/** A file with one model, formatted as an operator would write it. */
const CHAT = `[
  {
    "id": "vendor/chat",
    "aliases": ["chat"],
    "type": "chat",
    "name": "Chat",
    "provider": "Vendor",
    "description": "A model.",
    "released": "2026-02-28",
    "popular": false,
    "privacy": "anon",
    "inputs": ["text"],
    "context": 1000,
    "maxOutput": 100,
    "variants": {
      "thinking": "vendor/chat"
    },
    "endpoints": [
      {
        "provider": "OpenAI",
        "upstream": "openai",
        "model": "chat",
        "usdPerMillionTokens": {
          "input": "1.5",
          "output": "6"
        },
        "margin": "1.055",
        "parameters": "few"
      }
    ]
  }
]
`;

const VIDEO = `[
  {
    "id": "vendor/video-i2v",
    "type": "video",
    "name": "Video",
    "provider": "Vendor",
    "description": "A model.",
    "released": "2026-02-28",
    "popular": false,
    "privacy": "anon",
    "inputs": ["text", "image"],
    "outputs": ["video"],
    "capabilities": ["image_to_video", "requires_image"],
    "choices": {
      "duration": ["5", "10"],
      "quality": ["720p", "1080p"]
    },
    "endpoints": [
      {
        "provider": "fal",
        "upstream": "fal",
        "model": "vendor/video",
        "usdPerUnit": {
          "unit": "second",
          "usd": "0.1",
          "variants": [
            { "when": { "quality": "1080p" }, "usd": "0.2" }
          ]
        },
        "margin": "1.15",
        "parameters": ["prompt"]
      }
    ]
  }
]
`;

const PRIVATE = `[
  {
    "id": "private/chat",
    "aliases": ["private/alias"],
    "type": "chat",
    "name": "Chat",
    "provider": "Vendor",
    "description": "A model.",
    "released": "2026-02-28",
    "popular": false,
    "privacy": "e2e",
    "inputs": ["text"],
    "context": 1000,
    "maxOutput": 100,
    "endpoints": [
      {
        "provider": "Tinfoil",
        "upstream": "tinfoil",
        "model": "chat",
        "enclave": "/chat",
        "usdPerMillionTokens": { "input": "1.5", "output": "6" },
        "margin": "1.055",
        "parameters": "few",
        "eventBytes": 160,
        "templateTokens": 256
      }
    ]
  }
]
`;

async function complaint(files: Readonly<Record<string, string>>): Promise<string> {
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(directory, name), content);
  try {
    readCatalogue(directory);
    return 'none';
  } catch (error) {
    return (error as Error).message.replaceAll(`${directory}/`, '');
  }
}

test('reads valid files', async () => {
  expect(await complaint({ 'models.json': CHAT, 'private.json': PRIVATE, 'videos.json': VIDEO })).toBe('none');
});

describe('a mistake is reported with its file, line and field', () => {
  const USD = 'must be an amount of USD as text, such as "0.25"';
  test.each([
    [
      '"input": "1.5"',
      '"input": 1.5',
      `24 cannot be used: endpoints[0].usdPerMillionTokens.input of model "vendor/chat" ${USD}`,
    ],
    [
      '"upstream": "openai"',
      '"upstream": "openia"',
      '21 cannot be used: endpoints[0].upstream of model "vendor/chat" names the provider "openia", which does not exist',
    ],
    [
      '"margin": "1.055"',
      '"margin": "free"',
      '27 cannot be used: endpoints[0].margin of model "vendor/chat" must be a factor as text, such as "1.055"',
    ],
    [
      '"output": "6"',
      '"ouput": "6"',
      `23 cannot be used: endpoints[0].usdPerMillionTokens.output of model "vendor/chat" ${USD}\n` +
        'models.json:25 cannot be used: endpoints[0].usdPerMillionTokens of model "vendor/chat" has an unknown field "ouput"',
    ],
    [
      '          "input": "1.5",\n',
      '',
      `23 cannot be used: endpoints[0].usdPerMillionTokens.input of model "vendor/chat" ${USD}`,
    ],
    [
      '"maxOutput": 100',
      '"maxOutput": 5000',
      '14 cannot be used: maxOutput of model "vendor/chat" must not exceed its context',
    ],
    [
      '"context": 1000,',
      '"dimensions": 5,',
      '2 cannot be used: context of model "vendor/chat" must be a positive integer\n' +
        'models.json:13 cannot be used: model "vendor/chat" has an unknown field "dimensions"',
    ],
    [
      '"type": "chat"',
      '"type": "text"',
      '5 cannot be used: type of model "vendor/chat" must be one of chat, embedding, image, video, audio',
    ],
    ['    "id": "vendor/chat",\n', '', '2 cannot be used: id of model 1 must be a non-empty string'],
    [
      '"privacy": "anon"',
      '"privacy": "zdr"',
      '11 cannot be used: privacy of model "vendor/chat" is zdr, but none of its endpoints is',
    ],
    [
      '"aliases": ["chat"]',
      '"aliases": [\n5]',
      '5 cannot be used: aliases[0] of model "vendor/chat" must be a non-empty string',
    ],
    ['"aliases": ["chat"]', '"aliases": [\n"a", "a"]', '5 cannot be used: model "a" is defined twice'],
    [
      '"thinking": "vendor/chat"',
      '"thinking": "lost"',
      '16 cannot be used: variants.thinking of model "vendor/chat" names "lost", which is not a chat model',
    ],
    [
      '"parameters": "few"',
      '"parameters": "many"',
      '28 cannot be used: endpoints[0].parameters of model "vendor/chat" names the list "many", which does not exist',
    ],
  ])('%s → %s', async (field, mistake, sentence) => {
    expect(CHAT).toContain(field);
    // Another file with a model comes first, to detect errors that mix up the lines and indexes of files.
    const files = { 'a.json': CHAT.replaceAll('"chat"', '"other"').replaceAll('/chat', '/other') };
    files['a.json'] = files['a.json'].replace('"type": "other"', '"type": "chat"');
    expect(await complaint({ ...files, 'models.json': CHAT.replace(field, mistake) })).toBe(`models.json:${sentence}`);
  });

  test.each([
    [
      '"usd": "0.2"',
      '"usd": 0.2',
      `27 cannot be used: endpoints[0].usdPerUnit.variants[0].usd of model "vendor/video-i2v" ${USD}`,
    ],
    [
      '"unit": "second"',
      '"unit": "minute"',
      '24 cannot be used: endpoints[0].usdPerUnit.unit of model "vendor/video-i2v" must be one of second, clip',
    ],
    [
      '{ "quality": "1080p" }',
      '{ "quality": "4K" }',
      '27 cannot be used: endpoints[0].usdPerUnit.variants[0].when.quality of model "vendor/video-i2v" must be one of the choices of quality',
    ],
    [
      '{ "quality": "1080p" }',
      '{}',
      '27 cannot be used: endpoints[0].usdPerUnit.variants[0].when of model "vendor/video-i2v" must name a choice',
    ],
    [
      '"popular": false,',
      '"freeTier": true,\n    "popular": false,',
      '24 cannot be used: endpoints[0].usdPerUnit of model "vendor/video-i2v" must be 0 for a model of the free tier',
    ],
    [
      '"duration": ["5", "10"]',
      '"size": ["16:9"]',
      '14 cannot be used: choices.duration of model "vendor/video-i2v" must be a non-empty list',
    ],
    [
      ', "requires_image"]',
      ']',
      '13 cannot be used: capabilities of model "vendor/video-i2v" must have requires_image if and only if the id ends with -i2v',
    ],
    [
      '"image_to_video"',
      '"sing"',
      '13 cannot be used: capabilities[0] of model "vendor/video-i2v" must be one of text_to_video, image_to_video, requires_image',
    ],
    [
      '"usdPerUnit"',
      '"usdPerMillionTokens"',
      '19 cannot be used: endpoints[0].usdPerUnit of model "vendor/video-i2v" must be an object\n' +
        'videos.json:23 cannot be used: endpoints[0] of model "vendor/video-i2v" has an unknown field "usdPerMillionTokens"',
    ],
  ])('in a media model: %s → %s', async (field, mistake, sentence) => {
    expect(VIDEO).toContain(field);
    expect(await complaint({ 'videos.json': VIDEO.replace(field, mistake) })).toBe(`videos.json:${sentence}`);
  });

  const NAMED_PRIVATE = 'if and only if the id begins with private/';
  const UNREADABLE = 'is not allowed for a private model, because its requests cannot be read';
  test.each([
    [
      '"privacy": "e2e"',
      '"privacy": "anon"',
      `11 cannot be used: privacy of model "private/chat" must be e2e ${NAMED_PRIVATE}`,
    ],
    [
      '"private/chat"',
      '"vendor/chat"',
      `11 cannot be used: privacy of model "vendor/chat" must be e2e ${NAMED_PRIVATE}`,
    ],
    [
      '"private/alias"',
      '"alias"',
      '4 cannot be used: aliases[0] of model "private/chat" must begin with private/ if and only if the id does',
    ],
    ['["text"]', '["text", "image"]', '12 cannot be used: inputs of model "private/chat" must only contain text'],
    ['"popular"', '"routing": {}, "popular"', `10 cannot be used: routing of model "private/chat" ${UNREADABLE}`],
    [
      '"margin"',
      '"searchFee": "web_search", "margin"',
      `22 cannot be used: endpoints[0].searchFee of model "private/chat" ${UNREADABLE}`,
    ],
    [
      '"enclave": "/chat",',
      '',
      '16 cannot be used: endpoints[0].enclave of model "private/chat" is required for a private model',
    ],
    [
      '"/chat"',
      '"https://evil.example/"',
      '20 cannot be used: endpoints[0].enclave of model "private/chat" must be a lower-case path, such as "/model", or ""',
    ],
    [
      '"/chat"',
      '"/a/../chat"',
      '20 cannot be used: endpoints[0].enclave of model "private/chat" must be a lower-case path, such as "/model", or ""',
    ],
    [
      '"eventBytes": 160',
      '"eventBytes": -1',
      '24 cannot be used: endpoints[0].eventBytes of model "private/chat" must be a non-negative integer',
    ],
    [
      '"output": "6"',
      '"output": "0.0"',
      '21 cannot be used: endpoints[0].usdPerMillionTokens.output of model "private/chat" must be above 0 for a private model',
    ],
    [
      '"upstream": "tinfoil"',
      '"upstream": "openai"',
      '18 cannot be used: endpoints[0].upstream of model "private/chat" names the provider "openai", which does not support ehbp',
    ],
  ])('in a private model: %s → %s', async (field, mistake, sentence) => {
    expect(PRIVATE).toContain(field);
    expect(await complaint({ 'private.json': PRIVATE.replace(field, mistake) })).toBe(`private.json:${sentence}`);
  });

  test('if a private model shares an enclave, has two or is a variant, or if a public model has one', async () => {
    const other = (model: string, enclave: string) =>
      PRIVATE.replaceAll('"private/', `"private/${model}-`).replace('"/chat"', `"${enclave}"`);
    const both = (enclave: string) => complaint({ 'a.json': other('a', '/chat'), 'private.json': other('b', enclave) });
    expect(await both('/b')).toBe('none');
    expect(await both('/chat')).toBe(
      'private.json:20 cannot be used: endpoints[0].enclave of model "private/b-chat" is that of model "private/a-chat", but an enclave serves only one model',
    );
    const [model] = JSON.parse(PRIVATE);
    const twice = [{ ...model, endpoints: [...model.endpoints, ...model.endpoints] }];
    expect(await complaint({ 'private.json': JSON.stringify(twice), 'a.json': '[]' })).toBe(
      'private.json:1 cannot be used: endpoints of model "private/chat" must have exactly one entry, because only one enclave can decrypt a request\n' +
        'private.json:1 cannot be used: endpoints[1].provider of model "private/chat" is tinfoil, which another endpoint already has',
    );
    const led = CHAT.replace('"thinking": "vendor/chat"', '"thinking": "private/chat"');
    expect(await complaint({ 'private.json': PRIVATE, 'models.json': led })).toBe(
      'models.json:16 cannot be used: variants.thinking of model "vendor/chat" names "private/chat", which is a private model',
    );
    for (const [field, mistake, sentence] of [
      [
        '"margin"',
        '"enclave": "/chat", "margin"',
        '27 cannot be used: endpoints[0].enclave of model "vendor/chat" is only allowed for private models',
      ],
      [
        '"upstream": "openai"',
        '"upstream": "tinfoil"',
        '21 cannot be used: endpoints[0].upstream of model "vendor/chat" names the provider "tinfoil", which supports ehbp, the protocol of enclaves',
      ],
    ] as const)
      expect(await complaint({ 'models.json': CHAT.replace(field, mistake) })).toBe(`models.json:${sentence}`);
  });

  test('reports the second file if two files define the same name', async () => {
    expect(await complaint({ 'a.json': CHAT, 'models.json': CHAT })).toBe(
      'models.json:3 cannot be used: model "vendor/chat" is defined twice\n' +
        'models.json:4 cannot be used: model "chat" is defined twice',
    );
  });

  test('reports lines of parameter lists and fees', async () => {
    const lists = '{\n  "few": ["max_tokens"],\n  "none": []\n}';
    expect(await complaint({ 'models.json': CHAT, 'parameters.json': lists })).toBe(
      'parameters.json:3 cannot be used: none of the lists of parameters must be a non-empty list',
    );
    const modelRules = '{\n  "few": {\n    "efforts": ["high", "extreme"]\n  }\n}';
    expect(await complaint({ 'parameters.json': '{"few": ["a"]}', 'model-rules.json': modelRules })).toBe(
      'model-rules.json:3 cannot be used: few.efforts[1] of the rules of models must be one of none, minimal, low, medium, high, xhigh, max',
    );
    await rm(path.join(directory, 'model-rules.json'));
    const fees = '[\n  {\n  "name": "web_search",\n  "provider": "Exa",\n  "costUsd": "x",\n  "priceUsd": "0.02" }\n]';
    expect(await complaint({ 'parameters.json': '{"few": ["a"]}', 'fees.json': fees })).toBe(
      `fees.json:5 cannot be used: costUsd of fee "web_search" ${USD}`,
    );
  });

  test.each([
    ['', '', 'must have exactly one of priceUsd and priceUsdPerRequest'],
    ['"priceUsd": "1", ', '"priceUsdPerRequest": "1", ', 'must have exactly one of priceUsd and priceUsdPerRequest'],
  ])('requires exactly one of the two prices of a fee: %s%s', async (bySearch, byRequest, sentence) => {
    const fee = `[\n  { "name": "web_search", ${bySearch}${byRequest}"provider": "Exa", "costUsd": "1" }\n]`;
    expect(await complaint({ 'models.json': CHAT, 'fees.json': fee })).toBe(
      `fees.json:2 cannot be used: fee "web_search" ${sentence}`,
    );
  });

  test('requires that `zdr` of a fee is a boolean', async () => {
    const fee = '[{ "name": "web_search", "provider": "Exa", "costUsd": "1", "priceUsd": "1",\n"zdr": "yes" }]';
    expect(await complaint({ 'models.json': CHAT, 'fees.json': fee })).toBe(
      'fees.json:2 cannot be used: zdr of fee "web_search" must be true or false',
    );
  });

  test('reports lines of data endpoints; a catalogue without their file sells none', async () => {
    expect(await complaint({ 'models.json': CHAT })).toBe('none');
    expect(readCatalogue(directory).dataEndpoints).toEqual([]);
    const [shipped] = JSON.parse(readFileSync(path.join(getShippedCatalogueDir(), 'data-endpoints.json'), 'utf8'));
    const lookups = (more: object) => ({ 'data-endpoints.json': JSON.stringify([{ ...shipped, ...more }], null, 2) });
    expect(await complaint(lookups({ baseUsd: '0.08' }))).toBe('none');
    expect(readCatalogue(directory).dataEndpoints).toHaveLength(1);
    expect(await complaint(lookups({ baseUsd: 0.08 }))).toBe(
      `data-endpoints.json:13 cannot be used: baseUsd of data endpoint "maps/text-search/full" ${USD}`,
    );
    expect(await complaint(lookups({ upstream: 'openai' }))).toMatch(/^data-endpoints.json:8 .* how its key is sent$/);
  });

  test('reports all mistakes of a file in the order of their lines', async () => {
    const mistaken = CHAT.replace('"popular": false', '"popular": "no"')
      .replace('"context": 1000', '"context": 50')
      .replace('"inputs": ["text"]', '"inputs": ""')
      .replace('"margin": "1.055"', '"margin": "free",\n        "margn": "1.055",\n        "zdrs": true');
    expect((await complaint({ 'models.json': mistaken })).split('\n')).toEqual([
      'models.json:10 cannot be used: popular of model "vendor/chat" must be true or false',
      'models.json:12 cannot be used: inputs of model "vendor/chat" must be a non-empty list',
      'models.json:27 cannot be used: endpoints[0].margin of model "vendor/chat" must be a factor as text, such as "1.055"',
      'models.json:28 cannot be used: endpoints[0] of model "vendor/chat" has an unknown field "margn"',
      'models.json:29 cannot be used: endpoints[0] of model "vendor/chat" has an unknown field "zdrs"',
    ]);
  });

  test('reports all mistakes that concern several fields', async () => {
    const mistaken = CHAT.replace('"maxOutput": 100', '"maxOutput": 5000').replace('"anon"', '"zdr"');
    expect(await complaint({ 'models.json': mistaken })).toBe(
      'models.json:11 cannot be used: privacy of model "vendor/chat" is zdr, but none of its endpoints is\n' +
        'models.json:14 cannot be used: maxOutput of model "vendor/chat" must not exceed its context',
    );
  });

  test('reports all invalid references of all files with models', async () => {
    const mistaken = CHAT.replace('"few"', '"many"').replace('"thinking": "vendor/chat"', '"thinking": "lost"');
    const other = VIDEO.replace('"upstream": "fal"', '"upstream": "lost"');
    expect((await complaint({ 'models.json': mistaken, 'videos.json': other })).split('\n')).toEqual([
      'models.json:16 cannot be used: variants.thinking of model "vendor/chat" names "lost", which is not a chat model',
      'models.json:28 cannot be used: endpoints[0].parameters of model "vendor/chat" names the list "many", which does not exist',
      'videos.json:21 cannot be used: endpoints[0].upstream of model "vendor/video-i2v" names the provider "lost", which does not exist',
    ]);
  });

  test('reports at most 20 mistakes and the number of the others', async () => {
    const aliases = Array.from({ length: 23 }, () => '\n5').join();
    const lines = (await complaint({ 'models.json': CHAT.replace('["chat"]', `[${aliases}]`) })).split('\n');
    expect([lines.length, lines[19], lines[20]]).toEqual([
      21,
      'models.json:24 cannot be used: aliases[19] of model "vendor/chat" must be a non-empty string',
      'and 3 more',
    ]);
  });

  test.each([
    ['an extra comma', '[\n  {\n    "id": "a",\n  }\n]', 4],
    ['a missing comma', '[\n  {\n    "id": "a"\n    "type": "chat"\n  }\n]', 4],
    ['a missing quote', '[\n  {\n    "id": "a,\n    "type": "chat"\n  }\n]', 3],
    ['a word without quotes', '[\n\n  chat\n]', 3],
    ['a missing end', '[\n  {\n    "id": "a"', 3],
    ['text after the end', '[]\n[]', 2],
    ['no content', '', 1],
  ])('reports the line of a JSON syntax error: %s', async (_, content, line) => {
    expect(await complaint({ 'models.json': content })).toMatch(
      new RegExp(`^models\\.json:${line} cannot be used: invalid JSON: .*`),
    );
  });
});

describe('the list of providers', () => {
  const vendor = {
    slug: 'openai',
    protocol: 'openai',
    env: 'OPENAI',
    baseUrl: 'https://api.example/v1',
    sandboxPath: '/openai/v1',
    onDisconnect: 'stops',
  };
  const complaintAbout = (...vendors: object[]) =>
    complaint({ 'models.json': CHAT, 'providers.json': JSON.stringify(vendors, null, 2) });

  test.each<[object, string]>([
    [
      { slug: 'Open AI' },
      ':3 cannot be used: slug of provider "Open AI" must be lower case letters, digits and hyphens',
    ],
    [
      { env: 'openai' },
      ':5 cannot be used: env of provider "openai" must be upper case letters, digits and underscores',
    ],
    [
      { baseUrl: 'api.example' },
      ':6 cannot be used: baseUrl of provider "openai" must be a URL without a trailing slash',
    ],
    [{ sandboxPath: 'openai' }, ':7 cannot be used: sandboxPath of provider "openai" must be a path'],
    [{ onDisconnect: 'maybe' }, ':8 cannot be used: onDisconnect of provider "openai" must be one of stops, bills on'],
    [
      { credential: { in: 'cookie', name: 'key' } },
      ':10 cannot be used: credential.in of provider "openai" must be one of header, query',
    ],
    [{ keyCheck: 'models' }, ':9 cannot be used: keyCheck of provider "openai" must be a path'],
    [
      { protocol: 'fal', keyCheck: '/models' },
      ':9 cannot be used: keyCheck of provider "openai" is not supported by the protocol fal',
    ],
    [
      { protocol: 'data', modelList: { path: '/models', format: 'openai' } },
      ':9 cannot be used: modelList of provider "openai" is not supported by the protocol data',
    ],
    [
      { credential: { in: 'query', name: 'key' }, dialect: { messages: ['name', 5] } },
      ':16 cannot be used: dialect.messages[1] of provider "openai" must be a non-empty string',
    ],
    [{ key: 'hush' }, ':9 cannot be used: provider "openai" has an unknown field "key"'],
  ])('with %j is rejected with the line and the field', async (change, why) => {
    expect(await complaintAbout({ ...vendor, ...change })).toBe(`providers.json${why}`);
  });

  test('rejects duplicate slugs and duplicate prefixes of settings', async () => {
    expect(await complaintAbout(vendor, { ...vendor, env: 'OTHER' })).toMatch(
      'with the slug "openai" is defined twice',
    );
    expect(await complaintAbout(vendor, { ...vendor, slug: 'other' })).toMatch(
      'with the env "OPENAI" is defined twice',
    );
  });

  test('is that of the shipped catalogue if a directory has none', async () => {
    await complaint({ 'models.json': CHAT });
    expect(readProviders(directory)).toEqual(readProviders());
    expect(await complaintAbout(vendor)).toBe('none');
    expect(readProviders(directory)).toEqual([vendor]);
  });

  test('determines `onDisconnect` of endpoints that do not specify it', async () => {
    const [model] = JSON.parse(CHAT);
    const [endpoint] = model.endpoints;
    const own = { ...endpoint, provider: 'Other', onDisconnect: 'bills on' };
    const models = JSON.stringify([{ ...model, endpoints: [endpoint, own] }]);
    await complaint({ 'models.json': models, 'providers.json': JSON.stringify([vendor]) });
    const endpoints = readCatalogue(directory).findModel('vendor/chat')?.endpoints ?? [];
    expect(endpoints.map(({ onDisconnect }) => onDisconnect)).toEqual(['stops', 'bills on']);
  });
});
