/** Contacts and profiles of a member of a professional network, as Clado answers: https://docs.clado.ai/api-reference */
import { Refusal } from '../router.ts';
import { personOf } from './invented.ts';
import { type DataVendor, type DataVendorRequest, type DataVendorResult, type JsonObject, textIn } from './vendor.ts';

export const clado: DataVendor = {
  name: 'clado',
  keys: [{ in: 'header', name: 'authorization', prefix: 'Bearer ' }],
  refusal: (status, detail) => new Refusal(status, { detail }),
  lookups: {
    'GET /enrich/contacts': {
      usd: '0.20',
      answer: (asked) => {
        const given = ['linkedin_url', 'email', 'phone'].filter((name) => textIn(asked.fields, name));
        if (given.length !== 1)
          throw clado.refusal(400, 'Exactly one of linkedin_url, email, or phone must be provided');
        return contacts(asked);
      },
    },
    'GET /enrich/scrape': { usd: '0.04', billsNothingFound: true, answer: profile },
  },
};

function contacts(asked: DataVendorRequest): DataVendorResult {
  if (asked.count(1) === 0) return { body: { data: [{ error: true, contacts: [], social: [] }] }, results: 0 };
  const { email, phone, profile: link } = personOf(asked.seed);
  const found = [
    { type: 'email', value: email, rating: 100, subType: 'work' },
    { type: 'phone', value: phone, rating: 90, subType: 'mobile' },
  ];
  return {
    body: { data: [{ error: false, contacts: found, social: [{ link, type: 'li', rating: 100 }] }] },
    results: 1,
  };
}

function profile(asked: DataVendorRequest): DataVendorResult {
  const linkedin_url = textIn(asked.fields, 'linkedin_url');
  if (!linkedin_url) throw clado.refusal(422, 'linkedin_url is required');
  if (asked.count(1) === 0) throw clado.refusal(404, 'Profile not found');
  const { first, last, name, title, company, place } = personOf(asked.seed);
  const experience: readonly JsonObject[] = [
    { title, company_name: company.name, start_date: '2019-04-01', is_current: true },
  ];
  const about = { first_name: first, last_name: last, name, headline: `${title} at ${company.name}` };
  const data = { ...about, linkedin_url, location: place.address, experience, education: [], posts: [] };
  return { body: { data }, results: 1 };
}
