/** A company by its domain or its names, as CompanyEnrich answers: https://docs.companyenrich.com. Its errors are problem details (RFC 9457). */
import { STATUS_CODES } from 'node:http';
import { Refusal } from '../router.ts';
import { companyOf } from './invented.ts';
import { type DataVendor, type DataVendorRequest, type DataVendorResult, textIn } from './vendor.ts';

const PROPERTIES = ['name', 'linkedinUrl', 'twitterUrl', 'facebookUrl', 'instagramUrl', 'youTubeUrl'];

export const companyEnrich: DataVendor = {
  name: 'company-enrich',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  refusal: (status, detail) =>
    new Refusal(
      status,
      { type: 'about:blank', title: STATUS_CODES[status], status, detail },
      { 'content-type': 'application/problem+json' },
    ),
  lookups: {
    'GET /companies/enrich': { usd: '0.06', answer: (asked) => company(asked, ['domain']) },
    'POST /companies/enrich': { usd: '0.06', answer: (asked) => company(asked, PROPERTIES) },
  },
};

function company(asked: DataVendorRequest, by: readonly string[]): DataVendorResult {
  const { fields, seed } = asked;
  if (!by.some((name) => textIn(fields, name)))
    throw companyEnrich.refusal(400, `At least one of ${by.join(', ')} is required.`);
  if (asked.count(1) === 0) throw companyEnrich.refusal(404, 'Company not found.');
  const { name, domain, industry, founded, phone, place, profile } = companyOf(seed);
  const body = {
    id: seed.uuid(),
    name,
    domain: textIn(fields, 'domain') ?? domain,
    website: `https://${textIn(fields, 'domain') ?? domain}`,
    type: 'private',
    industry,
    employees: '51-200',
    revenue: '1m-10m',
    founded_year: founded,
    keywords: ['abaci', 'ink'],
    technologies: ['quill'],
    location: {
      country: { code: place.countryCode, name: place.country },
      city: { name: place.town },
      address: place.address,
      phone,
    },
    socials: { linkedin_url: profile },
  };
  return { body, results: 1 };
}
