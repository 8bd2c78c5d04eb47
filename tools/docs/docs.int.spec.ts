/** Checks the documentation against the code. `npm run docs` writes the generated sections instead of checking them. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readCatalogue } from '#catalogue';
import { SETTINGS } from '#foundation';
import { StoreUnavailableError } from '#kernel';
import { TestWorld } from '#testing';
import { DEFAULT_ERROR_FORMAT } from '../../apps/gateway/src/edge/errors/error-formats.ts';
import { ERROR_DEFINITIONS, toErrorResponse } from '../../apps/gateway/src/edge/errors/errors.ts';
import type { OpenApiDocument } from '../../apps/gateway/src/openapi/document.ts';
import { PROXY_SETTINGS } from '../../apps/private-proxy/src/settings.ts';
import { formatWelcome } from '../../apps/standalone/src/welcome.ts';
import { CLIENTS } from '../proofs/clients/list.ts';
import { DOCUMENTATIONS } from '../proofs/examples/list.ts';
import { expectPage, expectSection } from './expect-page.ts';
import {
  formatClientTable,
  formatDefaultModelTable,
  formatErrorTable,
  formatExampleTables,
  formatOperationTables,
  formatSettingsTable,
} from './generated.ts';
import { findDeadReferences, findMissingScripts, listPages, readPage } from './pages.ts';

const README_LINES = 150;

test('docs/settings.md lists every setting of the roles with its default and its meaning', () => {
  expectSection('docs/settings.md', 'settings', formatSettingsTable(Object.values(SETTINGS)));
});

test('docs/settings.md lists the settings of the local proxy for private models', () => {
  expectSection('docs/settings.md', 'proxy-settings', formatSettingsTable(Object.values(PROXY_SETTINGS)));
});

test('docs/settings.md lets HAProxy send the error of the gateway while no gateway is ready', () => {
  const [, body = ''] =
    /http-error status 503 content-type application\/json string '([^']+)'/.exec(readPage('docs/settings.md')) ?? [];
  const response = toErrorResponse(new StoreUnavailableError('no'));
  expect(JSON.parse(body)).toEqual(response && DEFAULT_ERROR_FORMAT.createBody(response));
});

describe('docs/api.md', () => {
  let world: TestWorld;
  let document: OpenApiDocument;
  beforeAll(async () => {
    world = await TestWorld.open();
    document = (await world.get('/openapi.json')).body;
  });
  afterAll(() => world.close());

  test('is based on docs/openapi.json, the document that a gateway serves on the default port', () => {
    const servers = document.servers.map(({ url }) => ({ url: url.replace(/:\d+/, ':3000') }));
    expectPage('docs/openapi.json', `${JSON.stringify({ ...document, servers }, undefined, 2)}\n`);
  });

  test('lists the operations of /openapi.json', () => {
    expectSection('docs/api.md', 'operations', formatOperationTables(document));
  });

  test('lists the tested clients with their versions', () => {
    expectSection('docs/api.md', 'clients', formatClientTable(CLIENTS));
  });

  test('lists the examples of the providers with their outcomes', () => {
    expectSection('docs/api.md', 'examples', formatExampleTables(DOCUMENTATIONS));
  });

  test('lists the models that agents request by default, all of which the shipped catalogue has', () => {
    const models = readCatalogue().models.filter(({ type }) => type === 'chat');
    const findModel = (name: string) => models.find(({ aliases }) => aliases?.includes(name))?.id;
    const requested = CLIENTS.flatMap(({ defaultModels }) => Object.values(defaultModels?.requested ?? {}));
    expect(requested.filter((name) => !findModel(name))).toEqual([]);
    expectSection('docs/api.md', 'default-models', formatDefaultModelTable(CLIENTS, findModel));
  });

  test('lists all errors of the API', () => {
    expectSection('docs/api.md', 'errors', formatErrorTable(ERROR_DEFINITIONS));
  });
});

describe('README.md', () => {
  test('has at most 150 lines', () => {
    expect(readPage('README.md').split('\n').length - 1).toBeLessThanOrEqual(README_LINES);
  });

  test('contains the requests that `npm start` prints', () => {
    const printed = formatWelcome({
      api: 'http://127.0.0.1:3000',
      sandbox: 'http://127.0.0.1:3100',
      providers: new Map(),
      paymentMethods: [],
      simulation: { usesSandbox: true, providers: true, payments: true },
    }).split('\n');
    const requests = printed.slice(printed.findIndex((line) => line.includes('account=$(curl')));
    expect(readPage('README.md')).toContain(requests.join('\n').trimEnd());
  });
});

describe.each(listPages())('%s', (page) => {
  test('refers only to files, headings and scripts that exist', () => {
    expect(findDeadReferences(page)).toEqual([]);
    expect(findMissingScripts(page)).toEqual([]);
  });
});
