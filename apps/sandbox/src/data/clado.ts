/** Contacts and profiles in a professional network, in Clado's format: https://docs.clado.ai/api-reference */
import { type JsonObject } from '#kernel';
import { HttpError } from '../router.ts';
import { generatePerson } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, type DataVendorResult, findText } from './vendor.ts';

export const clado: DataVendor = {
  name: 'clado',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  createError: (status, detail) => new HttpError(status, { detail }),
  lookups: {
    'GET /enrich/contacts': {
      usd: '0.20',
      execute: (request) => {
        const identifiers = ['linkedin_url', 'email', 'phone'].filter((name) => findText(request.fields, name));
        if (identifiers.length !== 1)
          throw clado.createError(400, 'Exactly one of linkedin_url, email, or phone must be provided');
        return createContacts(request);
      },
    },
    'GET /enrich/scrape': { usd: '0.04', billsEmptyResults: true, execute: createProfile },
  },
};

function createContacts(request: DataVendorRequest): DataVendorResult {
  if (request.count(1) === 0) return { body: { data: [{ error: true, contacts: [], social: [] }] }, results: 0 };
  const { email, phone, profile: link } = generatePerson(request.seed);
  const entries = [
    { type: 'email', value: email, rating: 100, subType: 'work' },
    { type: 'phone', value: phone, rating: 90, subType: 'mobile' },
  ];
  return {
    body: { data: [{ error: false, contacts: entries, social: [{ link, type: 'li', rating: 100 }] }] },
    results: 1,
  };
}

function createProfile(request: DataVendorRequest): DataVendorResult {
  const linkedin_url = findText(request.fields, 'linkedin_url');
  if (!linkedin_url) throw clado.createError(422, 'linkedin_url is required');
  if (request.count(1) === 0) throw clado.createError(404, 'Profile not found');
  const { first, last, name, title, company, place } = generatePerson(request.seed);
  const experience: readonly JsonObject[] = [
    { title, company_name: company.name, start_date: '2019-04-01', is_current: true },
  ];
  const identity = { first_name: first, last_name: last, name, headline: `${title} at ${company.name}` };
  const data = { ...identity, linkedin_url, location: place.address, experience, education: [], posts: [] };
  return { body: { data }, results: 1 };
}
