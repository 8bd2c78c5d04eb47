/** Data lookups in the format of the data file: places, people, pages, posts. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { z } from 'zod';
import { money } from '#kernel';
import {
  amount,
  anyObject,
  count,
  factor,
  flag,
  mapSchema,
  patternSchema,
  priceSource,
  text,
} from './field-schemas.ts';
import type { ProviderFile } from './provider-file.ts';
import {
  addCheck,
  collectMistakes,
  DataFileError,
  findDuplicates,
  isText,
  nameEntries,
  type ReportProblem,
  type Valid,
  validate,
} from './validation.ts';

/** Classes of data providers, used in paths and in the ledger. The API specification does not name them. */
export const DATA_PROVIDERS = [
  'maps',
  'people',
  'professionals',
  'identity',
  'web',
  'crawler',
  'contacts',
  'serp',
  'forum',
  'records',
  'email',
  'influencers',
  'x',
] as const;
export type DataProvider = (typeof DATA_PROVIDERS)[number];

/** The social network. Its lookups have a separate path prefix and are read-only. */
export const SOCIAL_PROVIDER: DataProvider = 'x';

/** Returns the path of a lookup below `/v1`. */
export function toDataPath({ provider, action }: Pick<DataEndpointFile, 'provider' | 'action'>): string {
  return provider === SOCIAL_PROVIDER ? `/data/${provider}/${action}` : `/data/api/${provider}/${action}`;
}

const method = z.enum(['GET', 'POST']);

/** Limits a number to `max`; `default` is sent if the request omits it. Limits a list to `max` elements. */
const fieldCap = z.strictObject({ max: count, default: count.optional() });
export type FieldCap = Valid<typeof fieldCap>;

const PATH_SEGMENT = '(?!\\.+(?:/|$))(?:[\\w.:-]|\\{\\w+\\})+';
const dottedPath = patternSchema('names separated by dots', /^\w+(\.\w+)*$/);

const endpoint = z.strictObject({
  provider: z.enum(DATA_PROVIDERS),
  action: patternSchema('lower case words separated by slashes', /^[a-z0-9_-]+(\/[a-z0-9_-]+)*$/),
  method,
  name: text,
  description: text,
  upstream: text.describe('Slug of the provider that is called.'),
  path: patternSchema('a path of plain names and {fields}', new RegExp(`^(?:/${PATH_SEGMENT})+/?$`)).describe(
    'Path at the provider. `{field}` is replaced by this field of the request, which is then not sent separately.',
  ),
  upstreamMethod: method
    .optional()
    .describe(
      "Method of the provider's route, if it differs from `method`. With GET, body fields are sent as query parameters.",
    ),
  headers: mapSchema(patternSchema('printable ASCII', /^[ -~]+$/))
    .optional()
    .describe('Additional request headers, such as a mask of the fields to return.'),
  always: anyObject
    .optional()
    .describe('Request fields with a fixed value that clients cannot set, for example because they change the price.'),
  baseUsd: amount.describe('USD per lookup, before the margin.'),
  costUsd: amount.optional().describe('USD that the provider invoices per lookup, if it is less than `baseUsd`.'),
  source: priceSource.optional(),
  margin: factor,
  guessed: flag.optional().describe('The price is an estimate, because the API specification has none.'),
  billed: z
    .strictObject({ usd: amount, count: dottedPath, cap: text })
    .optional()
    .describe(
      'Set if the provider invoices `usd` per result instead of the base price. `count` is the dotted path of the ' +
        'results or their number in the response, `cap` the request field that limits them.',
    ),
  caps: mapSchema(fieldCap).optional().describe('Keys are dotted paths of body fields, or names of query parameters.'),
  charged: z
    .strictObject({ empty: flag, notFound: flag, failed: flag, tooLong: flag.optional() })
    .describe(
      'Whether the provider invoices a lookup without results, one with status 404, and a failed one. `tooLong` is ' +
        'true if the caller chooses what is read, such as a page of their own: the caller then pays for a response ' +
        'that is too long to be forwarded.',
    ),
  results: dottedPath
    .optional()
    .describe(
      'Dotted path of the results in the response. The lookup found nothing if the value is missing, null, false, 0 ' +
        'or empty.',
    ),
  binary: flag.optional().describe('The response is not JSON.'),
  parameters: addCheck(anyObject, checkJsonSchema)
    .optional()
    .describe(
      'JSON schema of the body or of the query. Query values are strings, which are converted to the types of the ' +
        'schema.',
    ),
  example: anyObject.describe('A valid body or query, to which the provider responds successfully.'),
});
export type DataEndpointFile = Valid<typeof endpoint>;

export const dataEndpoints = z.array(addCheck(endpoint, checkDataEndpoint), 'must be a list of data endpoints');

const jsonSchemas = new Ajv2020({ strict: false, validateFormats: false, logger: false });

function checkJsonSchema(schema: object, report: ReportProblem): void {
  if (jsonSchemas.validateSchema(schema)) return;
  const [{ instancePath = '', message = '' } = {}] = jsonSchemas.errors ?? [];
  report(`is not a valid JSON schema: it ${message}`, ...instancePath.split('/').slice(1));
}

/** Headers that the HTTP client or the credential sets. */
const RESERVED_HEADERS =
  /^(host|connection|content-.*|transfer-encoding|accept-encoding|authorization|cookie|user-agent)$/;

/** @throws DataFileError that names the endpoint and the field */
export function parseDataEndpoints(data: unknown): readonly DataEndpointFile[] {
  const paths = Array.isArray(data) ? data.map((entry) => toDataPath(entry ?? {})) : [];
  const duplicates = findDuplicates(paths).map(([path, i]) => ({
    message: `data endpoint "${path}" is defined twice`,
    path: [i, 'action'],
  }));
  return validate(dataEndpoints, data, nameEndpoints(data), duplicates);
}

function nameEndpoints(data: unknown) {
  return nameEntries(data, 'data endpoint', ({ provider, action }) =>
    isText(provider) && isText(action) ? `${provider}/${action}` : undefined,
  );
}

function checkDataEndpoint(file: DataEndpointFile, report: ReportProblem): void {
  const { provider, method, path, headers = {}, caps = {}, example, charged, results } = file;
  if (provider === SOCIAL_PROVIDER && method !== 'GET') report(`must be GET for ${SOCIAL_PROVIDER}`, 'method');
  for (const name of Object.keys(headers))
    if (!/^[a-z0-9-]+$/.test(name) || RESERVED_HEADERS.test(name))
      report('must be a lower case name of a header that is not reserved', 'headers', name);
  for (const [field, { max, default: defaultValue = max }] of Object.entries(caps))
    if (defaultValue > max) report('must not exceed the cap', 'caps', field, 'default');
  for (const [, field = ''] of path.matchAll(/\{(\w+)\}/g))
    if (!isText(example[field])) report(`must have the string field ${field}, which is part of its path`, 'example');
  if (!charged.empty && results === undefined)
    report('is required if the provider does not charge for empty results', 'results');
  checkCostCovered(file, report);
}

/** Checks that the price of a lookup covers its cost, even if the provider invoices the maximum number of results. */
function checkCostCovered(
  { baseUsd, costUsd = baseUsd, billed, caps = {}, margin }: DataEndpointFile,
  report: ReportProblem,
): void {
  if (Number(margin) < 1) report('must not be below 1: it would sell below cost', 'margin');
  if (money.parseUsd(costUsd) > money.parseUsd(baseUsd)) report('must not exceed baseUsd', 'costUsd');
  if (!billed) return;
  const cap = Object.hasOwn(caps, billed.cap) ? caps[billed.cap] : undefined;
  if (!cap) report('must name a field that has a cap', 'billed', 'cap');
  else if (money.parseUsd(billed.usd) * BigInt(cap.max) > money.parseUsd(baseUsd))
    report(`must not exceed baseUsd in total for ${cap.max} results`, 'billed', 'usd');
}

/**
 * Checks that every data endpoint refers to an existing provider with a credential.
 * @throws DataFileError with paths that start with the index of the endpoint
 */
export function assertDataProvidersExist(
  endpoints: readonly DataEndpointFile[],
  providers: readonly ProviderFile[],
): readonly DataEndpointFile[] {
  const mistakes = collectMistakes(nameEndpoints(endpoints), (report) => {
    for (const [i, { upstream }] of endpoints.entries()) {
      const provider = providers.find(({ slug }) => slug === upstream);
      const problem = provider ? 'which does not specify how its key is sent' : 'which does not exist';
      if (!provider?.credential) report(`names the provider "${upstream}", ${problem}`, i, 'upstream');
    }
  });
  if (mistakes.length > 0) throw new DataFileError(mistakes);
  return endpoints;
}
