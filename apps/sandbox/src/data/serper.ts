/** What a search engine shows, as Serper answers: https://serper.dev */
import { Refusal } from '../router.ts';
import { companyOf, proseOf, type Seed, timeOf } from './invented.ts';
import {
  type DataVendor,
  type DataVendorRequest,
  type DataVendorResult,
  each,
  type Lookup,
  numberIn,
  textIn,
} from './vendor.ts';

const DEFAULT_NUM = 10;
const MOST = 100;
const SEARCH_USD = '0.04';
const LENS_USD = '0.20';

export const serper: DataVendor = {
  name: 'serper',
  keys: [{ in: 'header', name: 'x-api-key' }],
  refusal: (statusCode, message) => new Refusal(statusCode, { message, statusCode }),
  wrongKey: () => serper.refusal(403, 'Unauthorized.'),
  lookups: {
    'POST /news': listing('news', 'q', (seed, i) => ({
      title: `The ${companyOf(seed).name} was seen`,
      link: linkOf(seed),
      snippet: proseOf(seed, 15),
      date: timeOf(seed).slice(0, 10),
      source: companyOf(seed).name,
      imageUrl: imageOf(seed),
      position: i + 1,
    })),
    'POST /shopping': listing('shopping', 'q', (seed, i) => ({
      title: `${companyOf(seed).name} No. ${i + 1}`,
      source: companyOf(seed).name,
      link: linkOf(seed),
      price: `$${1 + (seed.number(3) % 90)}.${10 + (seed.number(4) % 90)}`,
      imageUrl: imageOf(seed),
      rating: 4.5,
      ratingCount: seed.number(5) % 900,
      productId: seed.digits(),
      position: i + 1,
    })),
    'POST /images': listing('images', 'q', (seed, i) => ({
      title: proseOf(seed, 5),
      imageUrl: imageOf(seed),
      imageWidth: 800,
      imageHeight: 600,
      thumbnailUrl: `${imageOf(seed)}?small`,
      source: companyOf(seed).name,
      domain: companyOf(seed).domain,
      link: linkOf(seed),
      position: i + 1,
    })),
    'POST /lens': listing('organic', 'url', (seed) => ({
      title: proseOf(seed, 5),
      source: companyOf(seed).name,
      link: linkOf(seed),
      imageUrl: imageOf(seed),
      thumbnailUrl: `${imageOf(seed)}?small`,
    })),
  },
};

function listing(name: string, about: 'q' | 'url', make: (seed: Seed, i: number) => object): Lookup {
  const answer = (asked: DataVendorRequest): DataVendorResult => {
    const { fields } = asked;
    if (!textIn(fields, about)) throw serper.refusal(400, `Missing ${about} parameter`);
    const num = numberIn(fields, 'num') ?? DEFAULT_NUM;
    if (num < 1 || num > MOST) throw serper.refusal(400, `num must be from 1 to ${MOST}`);
    const results = each(asked, asked.count(num), make);
    const searchParameters = { ...fields, type: name, engine: 'google' };
    return { body: { searchParameters, [name]: results, credits: 1 }, results: results.length };
  };
  return { usd: about === 'q' ? SEARCH_USD : LENS_USD, billsNothingFound: true, answer };
}

function linkOf(seed: Seed): string {
  return `https://${companyOf(seed).domain}/${seed.hex(8)}`;
}

function imageOf(seed: Seed): string {
  return `https://pictures.example/${seed.hex(16)}.png`;
}
