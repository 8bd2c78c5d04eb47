/** Verification of email addresses, in Hunter's format: https://hunter.io/api-documentation/v2 */
import { HttpError } from '../router.ts';
import { type DataVendor, findText } from './vendor.ts';

const STATUSES = ['valid', 'accept_all', 'invalid', 'unknown'] as const;
const RESULTS = { valid: 'deliverable', accept_all: 'risky', invalid: 'undeliverable', unknown: 'unknown' } as const;
const SCORES = { valid: 97, accept_all: 60, invalid: 2, unknown: 30 } as const;

export const hunter: DataVendor = {
  name: 'hunter',
  keys: [
    { in: 'header', name: 'x-api-key' },
    { in: 'header', name: 'authorization', prefix: 'Bearer ' },
    { in: 'query', name: 'api_key' },
  ],
  createError: (code, details) => new HttpError(code, { errors: [{ id: IDS[code] ?? 'server_error', code, details }] }),
  keyCheck: { path: '/account', body: { data: { plan_name: 'Sandbox', calls: { used: 0, available: 1_000 } } } },
  lookups: {
    'GET /email-verifier': {
      usd: '0.03',
      billsEmptyResults: true,
      execute: (request) => {
        const email = findText(request.fields, 'email');
        if (!email) throw hunter.createError(400, 'You are missing the email parameter');
        if (!/^\S+@\S+$/.test(email) && !email.includes('[[sandbox'))
          throw hunter.createError(400, 'The email address is invalid');
        const status = request.count(1) === 0 ? 'unknown' : request.seed.pick(STATUSES, 0);
        const data = {
          status,
          result: RESULTS[status],
          score: SCORES[status],
          email,
          regexp: true,
          gibberish: false,
          disposable: false,
          webmail: false,
          mx_records: status !== 'invalid',
          smtp_server: status !== 'invalid',
          smtp_check: status === 'valid',
          accept_all: status === 'accept_all',
          block: false,
          sources: [],
        };
        return { body: { data, meta: { params: { email } } }, results: Number(status !== 'unknown') };
      },
    },
  },
};

const IDS: Readonly<Record<number, string>> = {
  400: 'wrong_params',
  401: 'authentication_failed',
  402: 'payment_required',
  403: 'too_many_requests',
  404: 'not_found',
  422: 'invalid_params',
  429: 'usage_exceeded',
  451: 'claimed_email',
};
