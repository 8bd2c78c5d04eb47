/** Pages fetched and read, as Firecrawl answers: https://docs.firecrawl.dev/api-reference */
import { Refusal } from '../router.ts';
import { proseOf, type Seed } from './invented.ts';
import { type DataVendor, each, numberIn, textIn } from './vendor.ts';

const DEFAULT_LIMIT = 5;
const MOST = 100;

export const firecrawl: DataVendor = {
  name: 'firecrawl',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  refusal: (status, error) => new Refusal(status, { success: false, ...(CODES[status] ?? {}), error }),
  wrongKey: (missing) => firecrawl.refusal(401, missing ? 'Unauthorized' : 'Unauthorized: Invalid token'),
  lookups: {
    'POST /scrape': {
      usd: '0.0126',
      answer: (asked) => {
        const { fields, seed } = asked;
        const url = textIn(fields, 'url');
        if (!url || !URL.canParse(url)) throw firecrawl.refusal(400, 'url: Invalid URL');
        if (asked.count(1) === 0) return { body: { success: true, data: {} }, results: 0 };
        const formats = Array.isArray(fields.formats) ? fields.formats : ['markdown'];
        const title = `A page about ${proseOf(seed, 2)}`;
        const markdown = `# ${title}\n\n${proseOf(seed, 60)}`;
        const made: Readonly<Record<string, unknown>> = {
          markdown,
          summary: proseOf(seed, 12),
          html: `<h1>${title}</h1><p>${proseOf(seed, 60)}</p>`,
          rawHtml: `<!doctype html><title>${title}</title>`,
          links: [new URL('/next', url).href],
        };
        const parts = Object.fromEntries(formats.map((each) => [String(each), made[String(each)] ?? null]));
        const metadata = { title, language: 'en', sourceURL: url, url, statusCode: 200, contentType: 'text/html' };
        return { body: { success: true, data: { ...parts, metadata } }, results: 1 };
      },
    },
    'POST /search': {
      usd: '0.0252',
      billsNothingFound: true,
      answer: (asked) => {
        if (!textIn(asked.fields, 'query')) throw firecrawl.refusal(400, 'query: Required');
        const limit = numberIn(asked.fields, 'limit') ?? DEFAULT_LIMIT;
        if (limit < 1 || limit > MOST) throw firecrawl.refusal(400, `limit: must be from 1 to ${MOST}`);
        const web = each(asked, asked.count(limit), result);
        const body = { success: true, data: { web }, creditsUsed: 2 * Math.ceil(web.length / 10) };
        return { body, results: web.length };
      },
    },
  },
};

const CODES: Readonly<Record<number, object>> = { 400: { code: 'BAD_REQUEST' }, 422: { code: 'UNPROCESSABLE' } };

function result(seed: Seed, i: number) {
  return {
    url: `https://site${i + 1}.example/${seed.hex(8)}`,
    title: `Page ${i + 1}`,
    description: proseOf(seed, 15),
    position: i + 1,
  };
}
