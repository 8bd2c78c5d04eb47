/** People and companies by filters, in FullEnrich's format: https://docs.fullenrich.com/api/v2. Billed by result. */
import { HttpError } from '../router.ts';
import { type Company, generateCompany, generatePerson, type Seed } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, findNumber, generateResults } from './vendor.ts';

const DEFAULT_LIMIT = 10;
const MAX_LIMIT = 100;
const RESULT_USD = '0.015';

export const fullEnrich: DataVendor = {
  name: 'fullenrich',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  createError: (status, message) => new HttpError(status, { code: CODES[status] ?? 'error.internal', message }),
  keyCheck: { path: '/account/keys/verify', body: { workspace_id: 'sandbox' } },
  lookups: {
    'POST /people/search': {
      usd: RESULT_USD,
      per: 'result',
      execute: (request) => {
        const people = generateResults(request, request.count(parseLimit(request)), createPerson);
        return { body: { people, metadata: createMetadata(request, people.length) }, results: people.length };
      },
    },
    'POST /company/search': {
      usd: RESULT_USD,
      per: 'result',
      execute: (request) => {
        const companies = generateResults(request, request.count(parseLimit(request)), (seed) =>
          toCompanyJson(generateCompany(seed)),
        );
        return { body: { companies, metadata: createMetadata(request, companies.length) }, results: companies.length };
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

function parseLimit({ fields }: DataVendorRequest): number {
  const limit = findNumber(fields, 'limit') ?? DEFAULT_LIMIT;
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw fullEnrich.createError(400, `limit must be from 1 to ${MAX_LIMIT}`);
  for (const [name, filter] of Object.entries(fields)) {
    const isFilter =
      !Array.isArray(filter) || filter.every((condition) => typeof condition === 'object' && condition !== null);
    if (!isFilter) throw fullEnrich.createError(400, `${name} must be a list of objects`);
  }
  return limit;
}

function createMetadata({ seed }: DataVendorRequest, length: number) {
  return { total: length * 7, offset: 0, search_after: seed.formatHex(32), credits: length * 0.25 };
}

function createPerson(seed: Seed) {
  const { id, first, last, name, title, place, company: employer, profile, handle } = generatePerson(seed);
  return {
    id,
    full_name: name,
    first_name: first,
    last_name: last,
    location: { country: place.country, country_code: place.countryCode, city: place.town, region: place.region },
    social_profiles: { professional_network: { id: seed.getNumber(5), url: profile, handle } },
    employment: {
      current: {
        title,
        seniority: 'Director',
        is_current: true,
        start_at: '2019-04-01T00:00:00Z',
        company: toCompanyJson(employer),
      },
    },
  };
}

function toCompanyJson({ id, name, domain, industry, employees, founded, place, profile }: Company) {
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
