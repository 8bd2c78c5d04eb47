/**
 * The people that records belong to, and the validity of email addresses, in Minerva's format:
 * https://docs.minerva.io/api-reference
 */
import { type JsonObject } from '#kernel';
import { HttpError } from '../router.ts';
import { generatePerson, generateTime, type Seed } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, type DataVendorResult, generateResults } from './vendor.ts';

const MAX_RECORDS = 500;

export const minerva: DataVendor = {
  name: 'minerva',
  keys: [{ in: 'header', name: 'x-api-key' }],
  createError: (status, message) => new HttpError(status, { api_request_id: null, error_message: message }),
  lookups: {
    'POST /resolve': {
      usd: '0.02',
      billsEmptyResults: true,
      execute: (request) =>
        createRecords(request, (seed, record) => ({
          record_id: record.record_id ?? null,
          is_match: true,
          minerva_pid: `p-${seed.formatHex(32)}`,
          match_score: 90,
          full_name: generatePerson(seed).name,
        })),
    },
    'POST /enrich': {
      usd: '0.05',
      billsEmptyResults: true,
      execute: (request) => createRecords(request, createEnrichedRecord),
    },
    'POST /validate_emails': {
      usd: '0.01',
      billsEmptyResults: true,
      execute: (request) =>
        createRecords(request, (seed, _, email) => ({
          email_address: email,
          is_match: true,
          email_validation_status: seed.pick(['valid', 'invalid', 'unknown'], 2),
          email_last_seen: generateTime(seed),
        })),
    },
  },
};

function createRecords(
  request: DataVendorRequest,
  generate: (seed: Seed, record: JsonObject, text: unknown) => object,
): DataVendorResult {
  const { records: inputs } = request.fields;
  if (!Array.isArray(inputs))
    throw minerva.createError(422, "Input data must contain a 'records' key with a list of inputs");
  if (inputs.length > MAX_RECORDS) throw minerva.createError(413, `Maximum number of records is ${MAX_RECORDS}`);
  const results = generateResults(request, request.count(inputs.length), (seed, i) =>
    generate(seed, (inputs[i] ?? {}) as JsonObject, inputs[i]),
  );
  const body = { api_request_id: request.seed.formatUuid(), results, request_completed_at: generateTime(request.seed) };
  return { body, results: results.length };
}

function createEnrichedRecord(seed: Seed, record: JsonObject) {
  const person = generatePerson(seed);
  const { place, company } = person;
  return {
    record_id: record.record_id ?? null,
    is_match: true,
    minerva_pid: `p-${seed.formatHex(32)}`,
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
