/** People and companies by filters, as FullEnrich answers: https://docs.fullenrich.com/api/v2. Billed by what is found. */
import { Refusal } from '../router.ts';
import { type Company, companyOf, personOf, type Seed } from './invented.ts';
import { type DataVendor, type DataVendorRequest, each, numberIn } from './vendor.ts';

const DEFAULT_LIMIT = 10;
const MOST = 100;
const RESULT_USD = '0.015';

export const fullEnrich: DataVendor = {
  name: 'fullenrich',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  refusal: (status, message) => new Refusal(status, { code: CODES[status] ?? 'error.internal', message }),
  lookups: {
    'POST /people/search': {
      usd: RESULT_USD,
      per: 'result',
      answer: (asked) => {
        const people = each(asked, asked.count(limitOf(asked)), person);
        return { body: { people, metadata: metadata(asked, people.length) }, results: people.length };
      },
    },
    'POST /company/search': {
      usd: RESULT_USD,
      per: 'result',
      answer: (asked) => {
        const companies = each(asked, asked.count(limitOf(asked)), (seed) => company(companyOf(seed)));
        return { body: { companies, metadata: metadata(asked, companies.length) }, results: companies.length };
      },
    },
  },
};

const CODES: Readonly<Record<number, string>> = {
  400: 'error.bad_request',
  401: 'error.unauthorized',
  402: 'error.not_enough_credits',
  403: 'error.forbidden',
  404: 'error.not_found',
  422: 'error.validation',
  429: 'error.rate_limit',
};

function limitOf({ fields }: DataVendorRequest): number {
  const limit = numberIn(fields, 'limit') ?? DEFAULT_LIMIT;
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST)
    throw fullEnrich.refusal(400, `limit must be from 1 to ${MOST}`);
  for (const [name, filter] of Object.entries(fields)) {
    const isFilter = !Array.isArray(filter) || filter.every((each) => typeof each === 'object' && each !== null);
    if (!isFilter) throw fullEnrich.refusal(400, `${name} must be a list of objects`);
  }
  return limit;
}

function metadata({ seed }: DataVendorRequest, length: number) {
  return { total: length * 7, offset: 0, search_after: seed.hex(32), credits: length * 0.25 };
}

function person(seed: Seed) {
  const { id, first, last, name, title, place, company: employer, profile, handle } = personOf(seed);
  return {
    id,
    full_name: name,
    first_name: first,
    last_name: last,
    location: { country: place.country, country_code: place.countryCode, city: place.town, region: place.region },
    social_profiles: { professional_network: { id: seed.digits(), url: profile, handle } },
    employment: {
      current: {
        title,
        seniority: 'Director',
        is_current: true,
        start_at: '2019-04-01T00:00:00Z',
        company: company(employer),
      },
    },
  };
}

function company({ id, name, domain, industry, employees, founded, place, profile }: Company) {
  return {
    id,
    name,
    domain,
    industry: { main_industry: industry },
    headcount: employees,
    year_founded: founded,
    locations: { headquarters: { country: place.country, city: place.town, region: place.region } },
    social_profiles: { professional_network: { url: profile } },
  };
}
