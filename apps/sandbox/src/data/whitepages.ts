/** Public records of people and property, in Whitepages' format: https://api.whitepages.com/docs. A 404 is billed. */
import { type JsonObject } from '#kernel';
import { HttpError } from '../router.ts';
import { generatePerson, generatePlace, type Seed } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, findText, generateResults } from './vendor.ts';

const DEFAULT_RESULTS = 2;

export const whitepages: DataVendor = {
  name: 'whitepages',
  keys: [{ in: 'header', name: 'x-api-key' }],
  createError: (status, message) => new HttpError(status, { message }),
  createKeyError: () => whitepages.createError(403, 'Forbidden'),
  lookups: {
    'GET /v2/person': {
      usd: '0.44',
      billsEmptyResults: true,
      billsNotFound: true,
      execute: (request) => {
        assertAny(request, ['name', 'first_name', 'last_name', 'phone', 'street', 'zipcode']);
        const people = generateResults(request, request.count(DEFAULT_RESULTS), createPerson);
        return { body: { results: people, page: 1, has_more: false }, results: people.length };
      },
    },
    'GET /v2/property/': {
      usd: '0.44',
      billsNotFound: true,
      execute: (request) => {
        assertAny(request, ['street']);
        if (request.count(1) === 0) throw whitepages.createError(404, 'No property was found.');
        return { body: { result: createProperty(request.seed) }, results: 1 };
      },
    },
  },
};

function assertAny({ fields }: DataVendorRequest, names: readonly string[]): void {
  if (!names.some((name) => findText(fields, name)))
    throw whitepages.createError(400, `At least one of ${names.join(', ')} is required.`);
}

function createPerson(seed: Seed): JsonObject {
  const { name, age, phone, email, place, profile, company, title } = generatePerson(seed);
  return {
    id: `P${seed.formatHex(10)}`,
    name,
    aliases: [],
    is_dead: false,
    current_addresses: [{ id: `A${seed.formatHex(10)}`, address: place.address }],
    historic_addresses: [],
    owned_properties: [],
    phones: [{ number: phone.slice(1), type: 'mobile' }],
    emails: [email],
    date_of_birth: `${2026 - age}-00-00`,
    linkedin_url: profile,
    company_name: company.name,
    job_title: title,
    relatives: [],
  };
}

function createProperty(seed: Seed): JsonObject {
  const place = generatePlace(seed);
  const { id, name } = generatePerson(seed);
  return {
    property_id: `R${seed.formatHex(10)}`,
    apn: seed.formatDigits().slice(0, 10),
    property_address: {
      full_address: place.address,
      line1: place.street,
      city: place.town,
      state: place.region,
      zip: place.postcode,
    },
    ownership_info: { owner_type: 'Person', person_owners: [{ id, name }], business_owners: [] },
    residents: [{ id, name }],
  };
}
