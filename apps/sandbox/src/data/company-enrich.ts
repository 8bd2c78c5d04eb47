/**
 * A company by its domain, name or profiles, in CompanyEnrich's format: https://docs.companyenrich.com. Errors are
 * problem details (RFC 9457).
 */
import { STATUS_CODES } from 'node:http';
import { HttpError } from '../router.ts';
import { generateCompany } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, type DataVendorResult, findText } from './vendor.ts';

const PROPERTIES = ['name', 'linkedinUrl', 'twitterUrl', 'facebookUrl', 'instagramUrl', 'youTubeUrl'];

export const companyEnrich: DataVendor = {
  name: 'company-enrich',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  createError: (status, detail) =>
    new HttpError(
      status,
      { type: 'about:blank', title: STATUS_CODES[status], status, detail },
      { 'content-type': 'application/problem+json' },
    ),
  lookups: {
    'GET /companies/enrich': { usd: '0.06', execute: (request) => createCompany(request, ['domain']) },
    'POST /companies/enrich': { usd: '0.06', execute: (request) => createCompany(request, PROPERTIES) },
  },
};

function createCompany(request: DataVendorRequest, by: readonly string[]): DataVendorResult {
  const { fields, seed } = request;
  if (!by.some((name) => findText(fields, name)))
    throw companyEnrich.createError(400, `At least one of ${by.join(', ')} is required.`);
  if (request.count(1) === 0) throw companyEnrich.createError(404, 'Company not found.');
  const { name, domain, industry, founded, phone, place, profile } = generateCompany(seed);
  const body = {
    id: seed.formatUuid(),
    name,
    domain: findText(fields, 'domain') ?? domain,
    website: `https://${findText(fields, 'domain') ?? domain}`,
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
