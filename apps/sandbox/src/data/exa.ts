/**
 * A searchable web in Exa's format (https://docs.exa.ai/reference). Pages are generated from the request; the same
 * request returns the same pages.
 */
import { type JsonObject } from '#kernel';
import { HttpError } from '../router.ts';
import { generatePerson, generateProse, generateTime, type Seed } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, findNumber, findText, generateResults } from './vendor.ts';

const DEFAULT_RESULTS = 10;
const MAX_RESULTS = 100;
const PROSE_WORD_COUNT = 40;

export const exa: DataVendor = {
  name: 'exa',
  keys: [
    { in: 'header', name: 'x-api-key' },
    { in: 'header', name: 'authorization', prefix: 'Bearer ' },
  ],
  createError: (status, error) => new HttpError(status, { requestId: 'none', error }),
  // The directive in a search during a chat is meant for the model.
  requiresNamedDirective: true,
  lookups: {
    'POST /search': {
      usd: (request) => calculateSearchUsd(request.fields),
      billsEmptyResults: true,
      execute: (request) => {
        assertHasText(request, 'query');
        return createResult(request, { resolvedSearchType: 'neural' }, generatePages(request));
      },
    },
    'POST /findSimilar': {
      usd: '0.01',
      billsEmptyResults: true,
      execute: (request) => {
        assertHasText(request, 'url');
        return createResult(request, {}, generatePages(request));
      },
    },
    'POST /contents': {
      usd: '0.002',
      execute: (request) => {
        const { urls } = request.fields;
        if (!Array.isArray(urls) || urls.length === 0) throw exa.createError(400, 'urls must not be empty');
        const count = request.count(urls.length);
        const pages = generateResults(request, count, (seed, i) =>
          createPage(seed, i, String(urls[i] ?? ''), request.fields),
        );
        const statuses = pages.map(({ id }) => ({ id, status: 'success', source: 'cached' }));
        return createResult(request, { statuses }, pages);
      },
    },
    'POST /answer': {
      usd: '0.01',
      billsEmptyResults: true,
      execute: (request) => {
        assertHasText(request, 'query');
        const citations = generatePages(request, 3);
        const answer = citations.length === 0 ? '' : generateProse(request.seed, PROSE_WORD_COUNT);
        return { body: { requestId: request.seed.formatHex(32), answer, citations }, results: citations.length };
      },
    },
  },
};

/** A search costs less if the length of the returned texts is limited. */
function calculateSearchUsd({ contents }: JsonObject): string {
  const { text } = (contents ?? {}) as { readonly text?: { readonly maxCharacters?: unknown } };
  return text?.maxCharacters === undefined ? '0.01' : '0.005';
}

function assertHasText({ fields }: DataVendorRequest, name: string): void {
  if (!findText(fields, name)) throw exa.createError(400, `${name} must be a text`);
}

function generatePages(request: DataVendorRequest, defaultCount = DEFAULT_RESULTS) {
  const { fields } = request;
  const requestedCount = Math.min(findNumber(fields, 'numResults') ?? defaultCount, MAX_RESULTS);
  const [domain] = (fields.includeDomains ?? []) as readonly string[];
  const at = (seed: Seed, i: number) => `https://${domain ?? `site${i + 1}.example`}/${seed.formatHex(8)}/${i + 1}`;
  return generateResults(request, request.count(requestedCount), (seed, i) =>
    createPage(seed, i, at(seed, i), fields.contents as JsonObject),
  );
}

function createPage(seed: Seed, i: number, url: string, contents: JsonObject | undefined) {
  const { text } = (contents ?? {}) as { readonly text?: { readonly maxCharacters?: number } };
  return {
    id: url,
    url,
    title: `Page ${i + 1}`,
    score: 1 / (i + 1),
    publishedDate: generateTime(seed),
    author: generatePerson(seed).name,
    text: generateProse(seed, PROSE_WORD_COUNT).slice(0, text?.maxCharacters),
  };
}

function createResult({ seed, fields }: DataVendorRequest, extra: object, results: readonly object[]) {
  const costDollars = { total: Number(calculateSearchUsd(fields)) };
  return { body: { requestId: seed.formatHex(32), ...extra, results, costDollars }, results: results.length };
}
