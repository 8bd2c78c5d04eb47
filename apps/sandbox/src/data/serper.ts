/** Results of a search engine in Serper's format: https://serper.dev */
import { HttpError } from '../router.ts';
import { generateCompany, generateProse, generateTime, type Seed } from './generated-data.ts';
import {
  type DataVendor,
  type DataVendorRequest,
  type DataVendorResult,
  findNumber,
  findText,
  generateResults,
  type Lookup,
} from './vendor.ts';

const DEFAULT_NUM = 10;
const MAX_NUM = 100;
const SEARCH_USD = '0.04';
const LENS_USD = '0.20';

export const serper: DataVendor = {
  name: 'serper',
  keys: [{ in: 'header', name: 'x-api-key' }],
  createError: (statusCode, message) => new HttpError(statusCode, { message, statusCode }),
  createKeyError: () => serper.createError(403, 'Unauthorized.'),
  lookups: {
    'POST /news': createListLookup('news', 'q', (seed, i) => ({
      title: `The ${generateCompany(seed).name} was seen`,
      link: generateLink(seed),
      snippet: generateProse(seed, 15),
      date: generateTime(seed).slice(0, 10),
      source: generateCompany(seed).name,
      imageUrl: generateImageUrl(seed),
      position: i + 1,
    })),
    'POST /shopping': createListLookup('shopping', 'q', (seed, i) => ({
      title: `${generateCompany(seed).name} No. ${i + 1}`,
      source: generateCompany(seed).name,
      link: generateLink(seed),
      price: `$${1 + (seed.getNumber(3) % 90)}.${10 + (seed.getNumber(4) % 90)}`,
      imageUrl: generateImageUrl(seed),
      rating: 4.5,
      ratingCount: seed.getNumber(5) % 900,
      productId: seed.formatDigits(),
      position: i + 1,
    })),
    'POST /images': createListLookup('images', 'q', (seed, i) => ({
      title: generateProse(seed, 5),
      imageUrl: generateImageUrl(seed),
      imageWidth: 800,
      imageHeight: 600,
      thumbnailUrl: `${generateImageUrl(seed)}?small`,
      source: generateCompany(seed).name,
      domain: generateCompany(seed).domain,
      link: generateLink(seed),
      position: i + 1,
    })),
    'POST /lens': createListLookup('organic', 'url', (seed) => ({
      title: generateProse(seed, 5),
      source: generateCompany(seed).name,
      link: generateLink(seed),
      imageUrl: generateImageUrl(seed),
      thumbnailUrl: `${generateImageUrl(seed)}?small`,
    })),
  },
};

function createListLookup(name: string, queryField: 'q' | 'url', generate: (seed: Seed, i: number) => object): Lookup {
  const execute = (request: DataVendorRequest): DataVendorResult => {
    const { fields } = request;
    if (!findText(fields, queryField)) throw serper.createError(400, `Missing ${queryField} parameter`);
    const num = findNumber(fields, 'num') ?? DEFAULT_NUM;
    if (num < 1 || num > MAX_NUM) throw serper.createError(400, `num must be from 1 to ${MAX_NUM}`);
    const results = generateResults(request, request.count(num), generate);
    const searchParameters = { ...fields, type: name, engine: 'google' };
    return { body: { searchParameters, [name]: results, credits: 1 }, results: results.length };
  };
  return { usd: queryField === 'q' ? SEARCH_USD : LENS_USD, billsEmptyResults: true, execute };
}

function generateLink(seed: Seed): string {
  return `https://${generateCompany(seed).domain}/${seed.formatHex(8)}`;
}

function generateImageUrl(seed: Seed): string {
  return `https://pictures.example/${seed.formatHex(16)}.png`;
}
