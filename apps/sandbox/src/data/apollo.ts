/** People and companies in Apollo's format: https://docs.apollo.io/reference */
import { HttpError } from '../router.ts';
import { type Company, generateCompany, generatePerson, type Seed } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, findNumber, findText, generateResults } from './vendor.ts';

const MAX_PER_PAGE = 100;

export const apollo: DataVendor = {
  name: 'apollo',
  keys: [{ in: 'header', name: 'x-api-key' }],
  createError: (status, error) => new HttpError(status, { error, error_code: CODES[status] ?? 'API_ERROR' }),
  // Not JSON: this response comes from a layer before the API.
  createKeyError: () => new HttpError(401, 'Invalid access credentials.'),
  lookups: {
    'POST /mixed_people/api_search': {
      usd: '0.02',
      execute: (request) => {
        const people = generateResults(request, request.count(getPageSize(request)), createPersonSummary);
        return { body: { total_entries: people.length * 7, people }, results: people.length };
      },
    },
    'POST /mixed_companies/search': {
      usd: '0.02',
      billsEmptyResults: true,
      execute: (request) => {
        const organizations = generateResults(request, request.count(getPageSize(request)), (seed) =>
          createOrganization(seed, generateCompany(seed)),
        );
        const { length } = organizations;
        const pagination = { page: 1, per_page: getPageSize(request), total_entries: length * 7, total_pages: 7 };
        return {
          body: { breadcrumbs: [], partial_results_only: false, pagination, accounts: [], organizations },
          results: length,
        };
      },
    },
    'POST /people/match': {
      usd: '0.0495',
      execute: (request) => {
        const { fields } = request;
        if (
          !['email', 'id', 'linkedin_url', 'name', 'first_name', 'hashed_email'].some((name) => findText(fields, name))
        )
          throw apollo.createError(422, 'Parameters that identify a person are required.');
        const results = Math.min(request.count(1), 1);
        return {
          body: { person: results === 0 ? null : createPersonProfile(request.seed, findText(fields, 'email')) },
          results,
        };
      },
    },
    'GET /organizations/enrich': {
      usd: '0.0495',
      execute: (request) => {
        const { fields, seed } = request;
        if (!['domain', 'name', 'website', 'linkedin_url'].some((name) => findText(fields, name)))
          throw apollo.createError(422, 'Parameters that identify a company are required.');
        if (request.count(1) === 0) return { body: {}, results: 0 };
        const company = generateCompany(seed);
        const domain = findText(fields, 'domain') ?? company.domain;
        return { body: { organization: createOrganization(seed, { ...company, domain }) }, results: 1 };
      },
    },
  },
};

const CODES: Readonly<Record<number, string>> = {
  402: 'INSUFFICIENT_CREDITS',
  403: 'API_INACCESSIBLE',
  404: 'NOT_FOUND',
  422: 'UNPROCESSABLE',
  429: 'RATE_LIMITED',
};

function getPageSize({ fields }: DataVendorRequest): number {
  const pageSize = findNumber(fields, 'per_page') ?? 10;
  if (pageSize < 1 || pageSize > MAX_PER_PAGE)
    throw apollo.createError(422, `per_page must be from 1 to ${MAX_PER_PAGE}`);
  return pageSize;
}

/** Returns a person as in a search result: without contact data, and with a partly hidden last name. */
function createPersonSummary(seed: Seed) {
  const { first, last, title, company } = generatePerson(seed);
  return {
    id: seed.formatHex(24),
    first_name: first,
    last_name_obfuscated: `${last.slice(0, 2)}***${last.slice(-1)}`,
    title,
    has_email: true,
    has_direct_phone: 'Yes',
    organization: { name: company.name, has_industry: true },
  };
}

function createPersonProfile(seed: Seed, email: string | undefined) {
  const person = generatePerson(seed);
  const { company, place } = person;
  return {
    id: seed.formatHex(24),
    first_name: person.first,
    last_name: person.last,
    name: person.name,
    linkedin_url: person.profile,
    title: person.title,
    email_status: 'verified',
    email: email ?? person.email,
    headline: `${person.title} at ${company.name}`,
    city: place.town,
    state: place.region,
    country: place.country,
    employment_history: [
      { current: true, organization_name: company.name, title: person.title, start_date: '2019-04-01', end_date: null },
    ],
    organization: createOrganization(seed, company),
  };
}

function createOrganization(seed: Seed, company: Company) {
  return {
    id: company.id,
    name: company.name,
    website_url: `https://${company.domain}`,
    linkedin_url: company.profile,
    primary_domain: company.domain,
    primary_phone: { number: company.phone, source: 'Owned' },
    industry: company.industry,
    estimated_num_employees: company.employees,
    founded_year: company.founded,
    raw_address: company.place.address,
    keywords: [company.industry.toLowerCase(), seed.formatHex(6)],
  };
}
