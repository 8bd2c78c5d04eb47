/**
 * A searchable web in Exa's format (https://docs.exa.ai/reference). Pages are generated from the request; the same
 * request returns the same pages.
 */
import { formatUsd, type JsonObject, parseUsd, toPicoUsd } from '#kernel';
import { HttpError } from '../router.ts';
import { generatePerson, generateProse, generateTime, type Seed } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, findNumber, findText, generateResults } from './vendor.ts';

const DEFAULT_RESULTS = 10;
/** Results that the price of a search includes. */
const INCLUDED_RESULTS = 10;
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
      usd: (request) => calculateSearchUsd(countPages(request)),
      billsEmptyResults: true,
      execute: (request) => {
        assertHasText(request, 'query');
        const pages = generatePages(request);
        return createResult(request, { resolvedSearchType: 'neural' }, pages, calculateSearchUsd(pages.length));
      },
    },
    'POST /findSimilar': {
      usd: '0.01',
      billsEmptyResults: true,
      execute: (request) => {
        assertHasText(request, 'url');
        return createResult(request, {}, generatePages(request), '0.01');
      },
    },
    'POST /contents': {
      usd: '0.001',
      execute: (request) => {
        const { urls } = request.fields;
        if (!Array.isArray(urls) || urls.length === 0) throw exa.createError(400, 'urls must not be empty');
        const count = request.count(urls.length);
        const pages = generateResults(request, count, (seed, i) =>
          createPage(seed, i, String(urls[i] ?? ''), request.fields),
        );
        const statuses = pages.map(({ id }) => ({ id, status: 'success' }));
        return createResult(
          request,
          { statuses },
          pages,
          formatUsd(toPicoUsd(parseUsd('0.001') * BigInt(pages.length))),
        );
      },
    },
    'POST /answer': {
      usd: '0.005',
      billsEmptyResults: true,
      execute: (request) => {
        assertHasText(request, 'query');
        const citations = generatePages(request, 3);
        const answer = citations.length === 0 ? '' : generateProse(request.seed, PROSE_WORD_COUNT);
        const costDollars = { total: 0.005 };
        const body = { requestId: request.seed.formatHex(32), answer, citations, costDollars };
        return { body, results: citations.length };
      },
    },
  },
};

/** A search includes ten results with their texts: https://exa.ai/docs/reference/pricing */
function calculateSearchUsd(results: number): string {
  const extraResults = Math.max(0, results - INCLUDED_RESULTS);
  return formatUsd(toPicoUsd(parseUsd('0.007') + BigInt(extraResults) * parseUsd('0.001')));
}

function assertHasText({ fields }: DataVendorRequest, name: string): void {
  if (!findText(fields, name)) throw exa.createError(400, `${name} must be a text`);
}

function countPages({ fields, count }: DataVendorRequest, defaultCount = DEFAULT_RESULTS): number {
  return count(Math.min(findNumber(fields, 'numResults') ?? defaultCount, MAX_RESULTS));
}

function generatePages(request: DataVendorRequest, defaultCount = DEFAULT_RESULTS) {
  const { fields } = request;
  const [domain] = (fields.includeDomains ?? []) as readonly string[];
  const at = (seed: Seed, i: number) => `https://${domain ?? `site${i + 1}.example`}/${seed.formatHex(8)}/${i + 1}`;
  return generateResults(request, countPages(request, defaultCount), (seed, i) =>
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

function createResult({ seed }: DataVendorRequest, extra: object, results: readonly object[], usd: string) {
  const costDollars = { total: Number(usd) };
  return { body: { requestId: seed.formatHex(32), ...extra, results, costDollars }, results: results.length };
}
