/** Scraped pages and searches in Firecrawl's format: https://docs.firecrawl.dev/api-reference */
import { HttpError } from '../router.ts';
import { generateProse, type Seed } from './generated-data.ts';
import { type DataVendor, findNumber, findText, generateResults } from './vendor.ts';

const DEFAULT_LIMIT = 5;
const MAX_LIMIT = 100;

export const firecrawl: DataVendor = {
  name: 'firecrawl',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  createError: (status, error) => new HttpError(status, { success: false, ...(CODES[status] ?? {}), error }),
  createKeyError: (missing) => firecrawl.createError(401, missing ? 'Unauthorized' : 'Unauthorized: Invalid token'),
  keyCheck: { path: '/team/credit-usage', body: { success: true, data: { remainingCredits: 1_000 } } },
  lookups: {
    'POST /scrape': {
      usd: '0.0126',
      execute: (request) => {
        const { fields, seed } = request;
        const url = findText(fields, 'url');
        if (!url || !URL.canParse(url)) throw firecrawl.createError(400, 'url: Invalid URL');
        if (request.count(1) === 0) return { body: { success: true, data: {} }, results: 0 };
        const formats = Array.isArray(fields.formats) ? fields.formats : ['markdown'];
        const title = `A page about ${generateProse(seed, 2)}`;
        const markdown = `# ${title}\n\n${generateProse(seed, 60)}`;
        const contentByFormat: Readonly<Record<string, unknown>> = {
          markdown,
          summary: generateProse(seed, 12),
          html: `<h1>${title}</h1><p>${generateProse(seed, 60)}</p>`,
          rawHtml: `<!doctype html><title>${title}</title>`,
          links: [new URL('/next', url).href],
        };
        const parts = Object.fromEntries(
          formats.map((format) => [String(format), contentByFormat[String(format)] ?? null]),
        );
        const metadata = { title, language: 'en', sourceURL: url, url, statusCode: 200, contentType: 'text/html' };
        return { body: { success: true, data: { ...parts, metadata } }, results: 1 };
      },
    },
    'POST /search': {
      usd: '0.0252',
      billsEmptyResults: true,
      execute: (request) => {
        if (!findText(request.fields, 'query')) throw firecrawl.createError(400, 'query: Required');
        const limit = findNumber(request.fields, 'limit') ?? DEFAULT_LIMIT;
        if (limit < 1 || limit > MAX_LIMIT) throw firecrawl.createError(400, `limit: must be from 1 to ${MAX_LIMIT}`);
        const web = generateResults(request, request.count(limit), createResult);
        const body = { success: true, data: { web }, creditsUsed: 2 * Math.ceil(web.length / 10) };
        return { body, results: web.length };
      },
    },
  },
};

const CODES: Readonly<Record<number, object>> = { 400: { code: 'BAD_REQUEST' }, 422: { code: 'UNPROCESSABLE' } };

function createResult(seed: Seed, i: number) {
  return {
    url: `https://site${i + 1}.example/${seed.formatHex(8)}`,
    title: `Page ${i + 1}`,
    description: generateProse(seed, 15),
    position: i + 1,
  };
}
