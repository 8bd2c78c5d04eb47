/** Public records of people and property, as Whitepages answers: https://api.whitepages.com/docs. What is not found is billed. */
import { Refusal } from '../router.ts';
import { personOf, placeOf, type Seed } from './invented.ts';
import { type DataVendor, type DataVendorRequest, each, type JsonObject, textIn } from './vendor.ts';

const USUALLY_FOUND = 2;

export const whitepages: DataVendor = {
  name: 'whitepages',
  keys: [{ in: 'header', name: 'x-api-key' }],
  refusal: (status, message) => new Refusal(status, { message }),
  wrongKey: () => whitepages.refusal(403, 'Forbidden'),
  lookups: {
    'GET /v2/person': {
      usd: '0.44',
      billsNothingFound: true,
      billsNotFound: true,
      answer: (asked) => {
        assertAny(asked, ['name', 'first_name', 'last_name', 'phone', 'street', 'zipcode']);
        const people = each(asked, asked.count(USUALLY_FOUND), person);
        return { body: { results: people, page: 1, has_more: false }, results: people.length };
      },
    },
    'GET /v2/property/': {
      usd: '0.44',
      billsNotFound: true,
      answer: (asked) => {
        assertAny(asked, ['street']);
        if (asked.count(1) === 0) throw whitepages.refusal(404, 'No property was found.');
        return { body: { result: property(asked.seed) }, results: 1 };
      },
    },
  },
};

function assertAny({ fields }: DataVendorRequest, names: readonly string[]): void {
  if (!names.some((name) => textIn(fields, name)))
    throw whitepages.refusal(400, `At least one of ${names.join(', ')} is required.`);
}

function person(seed: Seed): JsonObject {
  const { name, age, phone, email, place, profile, company, title } = personOf(seed);
  return {
    id: `P${seed.hex(10)}`,
    name,
    aliases: [],
    is_dead: false,
    current_addresses: [{ id: `A${seed.hex(10)}`, address: place.address }],
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

function property(seed: Seed): JsonObject {
  const place = placeOf(seed);
  const { id, name } = personOf(seed);
  return {
    property_id: `R${seed.hex(10)}`,
    apn: seed.digits().slice(0, 10),
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
