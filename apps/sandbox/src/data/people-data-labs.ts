/**
 * People in People Data Labs' format: https://docs.peopledatalabs.com/docs. If no person is found, the response is a
 * 404 and free.
 */
import { type JsonObject } from '#kernel';
import { HttpError } from '../router.ts';
import { generatePerson } from './generated-data.ts';
import { type DataVendor, type DataVendorRequest, type DataVendorResult, findText } from './vendor.ts';

export const peopleDataLabs: DataVendor = {
  name: 'people-data-labs',
  keys: [
    { in: 'header', name: 'x-api-key' },
    { in: 'query', name: 'api_key' },
  ],
  createError: (status, message) =>
    new HttpError(status, { status, error: { type: TYPES[status] ?? 'api_error', message } }),
  lookups: {
    'GET /person/enrich': { usd: '0.28', execute: createPerson },
    'POST /person/enrich': { usd: '0.28', execute: createPerson },
  },
};

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'payment_required',
  403: 'permission_error',
  404: 'not_found',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
};

function createPerson(request: DataVendorRequest): DataVendorResult {
  assertAny(request.fields, ['email', 'email_hash', 'profile', 'phone', 'name', 'pdl_id', 'lid', 'first_name']);
  if (request.count(1) === 0) throw notFoundError();
  const person = generatePerson(request.seed);
  const data = {
    id: request.seed.formatHex(22),
    full_name: person.name.toLowerCase(),
    first_name: person.first.toLowerCase(),
    last_name: person.last.toLowerCase(),
    linkedin_url: person.profile,
    work_email: findText(request.fields, 'email') ?? person.email,
    mobile_phone: person.phone,
    job_title: person.title.toLowerCase(),
    job_company_name: person.company.name.toLowerCase(),
    job_company_website: person.company.domain,
    location_name: person.place.address.toLowerCase(),
    skills: ['counting', 'inkwells'],
    experience: [{ company: { name: person.company.name.toLowerCase() }, is_primary: true }],
    education: [],
  };
  return { body: { status: 200, likelihood: 8, data: selectFields(data, request.fields) }, results: 1 };
}

/**
 * Returns the fields in `data_include`; if it starts with `-`, all others; without `data_include`, all. The match is
 * billed in any case.
 */
function selectFields(data: JsonObject, fields: JsonObject): JsonObject {
  const fieldFilter = findText(fields, 'data_include');
  if (fieldFilter === undefined) return data;
  const names = fieldFilter.replace(/^-/, '').split(',');
  return Object.fromEntries(
    Object.entries(data).filter(([name]) => names.includes(name) !== fieldFilter.startsWith('-')),
  );
}

function assertAny(fields: JsonObject, names: readonly string[]): void {
  if (!names.some((name) => findText(fields, name)))
    throw peopleDataLabs.createError(400, `Request must contain at least one of ${names.join(', ')}`);
}

function notFoundError(): HttpError {
  return peopleDataLabs.createError(404, 'No records were found matching your request');
}
