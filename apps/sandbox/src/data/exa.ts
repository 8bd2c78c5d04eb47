/** A web to search, as Exa answers (https://docs.exa.ai/reference): pages that are made up from the question, always the same ones. */
import { Refusal } from '../router.ts';
import { personOf, proseOf, type Seed, timeOf } from './invented.ts';
import { type DataVendor, type DataVendorRequest, each, type JsonObject, numberIn, textIn } from './vendor.ts';

const DEFAULT_RESULTS = 10;
const MOST_RESULTS = 100;
const WORDS = 40;

export const exa: DataVendor = {
  name: 'exa',
  keys: [
    { in: 'header', name: 'x-api-key' },
    { in: 'header', name: 'authorization', prefix: 'Bearer ' },
  ],
  refusal: (status, error) => new Refusal(status, { requestId: 'none', error }),
  // A search in the course of a chat has the words that are meant for the model.
  onlyNamed: true,
  lookups: {
    'POST /search': {
      usd: (asked) => searchUsd(asked.fields),
      billsNothingFound: true,
      answer: (asked) => {
        required(asked, 'query');
        return found(asked, { resolvedSearchType: 'neural' }, pagesFor(asked));
      },
    },
    'POST /findSimilar': {
      usd: '0.01',
      billsNothingFound: true,
      answer: (asked) => {
        required(asked, 'url');
        return found(asked, {}, pagesFor(asked));
      },
    },
    'POST /contents': {
      usd: '0.002',
      answer: (asked) => {
        const { urls } = asked.fields;
        if (!Array.isArray(urls) || urls.length === 0) throw exa.refusal(400, 'urls must not be empty');
        const count = asked.count(urls.length);
        const pages = each(asked, count, (seed, i) => page(seed, i, String(urls[i] ?? ''), asked.fields));
        const statuses = pages.map(({ id }) => ({ id, status: 'success', source: 'cached' }));
        return found(asked, { statuses }, pages);
      },
    },
    'POST /answer': {
      usd: '0.01',
      billsNothingFound: true,
      answer: (asked) => {
        required(asked, 'query');
        const citations = pagesFor(asked, 3);
        const answer = citations.length === 0 ? '' : proseOf(asked.seed, WORDS);
        return { body: { requestId: asked.seed.hex(32), answer, citations }, results: citations.length };
      },
    },
  },
};

/** Less where the texts that come with the pages are short. */
function searchUsd({ contents }: JsonObject): string {
  const { text } = (contents ?? {}) as { readonly text?: { readonly maxCharacters?: unknown } };
  return text?.maxCharacters === undefined ? '0.01' : '0.005';
}

function required({ fields }: DataVendorRequest, name: string): void {
  if (!textIn(fields, name)) throw exa.refusal(400, `${name} must be a text`);
}

function pagesFor(asked: DataVendorRequest, usual = DEFAULT_RESULTS) {
  const { fields } = asked;
  const wanted = Math.min(numberIn(fields, 'numResults') ?? usual, MOST_RESULTS);
  const [domain] = (fields.includeDomains ?? []) as readonly string[];
  const at = (seed: Seed, i: number) => `https://${domain ?? `site${i + 1}.example`}/${seed.hex(8)}/${i + 1}`;
  return each(asked, asked.count(wanted), (seed, i) => page(seed, i, at(seed, i), fields.contents as JsonObject));
}

function page(seed: Seed, i: number, url: string, contents: JsonObject | undefined) {
  const { text } = (contents ?? {}) as { readonly text?: { readonly maxCharacters?: number } };
  return {
    id: url,
    url,
    title: `Page ${i + 1}`,
    score: 1 / (i + 1),
    publishedDate: timeOf(seed),
    author: personOf(seed).name,
    text: proseOf(seed, WORDS).slice(0, text?.maxCharacters),
  };
}

function found({ seed, fields }: DataVendorRequest, more: object, results: readonly object[]) {
  const costDollars = { total: Number(searchUsd(fields)) };
  return { body: { requestId: seed.hex(32), ...more, results, costDollars }, results: results.length };
}
