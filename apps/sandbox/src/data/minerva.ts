/** Who a record of a person is of, as Minerva answers: https://docs.minerva.io/api-reference */
import { Refusal } from '../router.ts';
import { personOf, type Seed, timeOf } from './invented.ts';
import { type DataVendor, type DataVendorRequest, type DataVendorResult, each, type JsonObject } from './vendor.ts';

const MOST_RECORDS = 500;

export const minerva: DataVendor = {
  name: 'minerva',
  keys: [{ in: 'header', name: 'x-api-key' }],
  refusal: (status, message) => new Refusal(status, { api_request_id: null, error_message: message }),
  lookups: {
    'POST /resolve': {
      usd: '0.02',
      billsNothingFound: true,
      answer: (asked) =>
        records(asked, (seed, record) => ({
          record_id: record.record_id ?? null,
          is_match: true,
          minerva_pid: `p-${seed.hex(32)}`,
          match_score: 90,
          full_name: personOf(seed).name,
        })),
    },
    'POST /enrich': {
      usd: '0.05',
      billsNothingFound: true,
      answer: (asked) => records(asked, enriched),
    },
    'POST /validate_emails': {
      usd: '0.01',
      billsNothingFound: true,
      answer: (asked) =>
        records(asked, (seed, _, email) => ({
          email_address: email,
          is_match: true,
          email_validation_status: seed.of(['valid', 'invalid', 'unknown'], 2),
          email_last_seen: timeOf(seed),
        })),
    },
  },
};

function records(
  asked: DataVendorRequest,
  make: (seed: Seed, record: JsonObject, text: unknown) => object,
): DataVendorResult {
  const { records: given } = asked.fields;
  if (!Array.isArray(given))
    throw minerva.refusal(422, "Input data must contain a 'records' key with a list of inputs");
  if (given.length > MOST_RECORDS) throw minerva.refusal(413, `Maximum number of records is ${MOST_RECORDS}`);
  const results = each(asked, asked.count(given.length), (seed, i) =>
    make(seed, (given[i] ?? {}) as JsonObject, given[i]),
  );
  const body = { api_request_id: asked.seed.uuid(), results, request_completed_at: timeOf(asked.seed) };
  return { body, results: results.length };
}

function enriched(seed: Seed, record: JsonObject) {
  const person = personOf(seed);
  const { place, company } = person;
  return {
    record_id: record.record_id ?? null,
    is_match: true,
    minerva_pid: `p-${seed.hex(32)}`,
    full_name: person.name,
    first_name: person.first,
    last_name: person.last,
    age: person.age,
    emails: [{ email_address: person.email, email_rank: 1 }],
    phones: [{ phone_number: person.phone, phone_rank: 1 }],
    addresses: [{ full_address: place.address, city: place.town, state: place.region, zip: place.postcode }],
    work_experience: [{ company_name: company.name, title: person.title, is_current: true }],
    linkedin_url: person.profile,
  };
}
