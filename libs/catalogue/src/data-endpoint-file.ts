/** Data lookups in the format of the data file: places, people, pages, posts. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { money } from '#kernel';
import { type PriceSource, priceSource } from './model-file.ts';
import type { ProviderFile } from './provider-file.ts';
import {
  amount,
  anyObject,
  count,
  createDataFileError,
  DataFileError,
  enumRule,
  type FieldLocation,
  factor,
  findDuplicate,
  flag,
  isText,
  mapRule,
  objectRule,
  optionalRule,
  patternRule,
  text,
  toFieldLocation,
  type ValidationRule,
  withParent,
} from './validation-rules.ts';

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

export type DataMethod = 'GET' | 'POST';

/** Limits a number to `max`; `default` is sent if the request omits it. Limits a list to `max` elements. */
export interface FieldCap {
  readonly max: number;
  readonly default?: number;
}

export interface DataEndpointFile {
  readonly provider: DataProvider;
  readonly action: string;
  readonly method: DataMethod;
  readonly name: string;
  readonly description: string;
  /** Slug of the provider that is called. */
  readonly upstream: string;
  /** Path at the provider. `{field}` is replaced by this field of the request, which is then not sent separately. */
  readonly path: string;
  /**
   * Method of the provider's route, if it differs from `method`. With GET, body fields are sent as query parameters.
   */
  readonly upstreamMethod?: DataMethod;
  /** Additional request headers, such as a mask of the fields to return. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Request fields with a fixed value that clients cannot set, for example because they change the price. */
  readonly always?: Readonly<Record<string, unknown>>;
  /** USD per lookup, before the margin. */
  readonly baseUsd: string;
  /** USD that the provider invoices per lookup, if it is less than `baseUsd`. */
  readonly costUsd?: string;
  readonly source?: PriceSource;
  readonly margin: string;
  /** The price is an estimate, because the API specification has none. */
  readonly guessed?: boolean;
  /**
   * Set if the provider invoices `usd` per result instead of the base price. `count` is the dotted path of the results
   * or their number in the response, `cap` the request field that limits them.
   */
  readonly billed?: { readonly usd: string; readonly count: string; readonly cap: string };
  /** Keys are dotted paths of body fields, or names of query parameters. */
  readonly caps?: Readonly<Record<string, FieldCap>>;
  /**
   * Whether the provider invoices a lookup without results, one with status 404, and a failed one. `tooLong` is true if
   * the caller chooses what is read, such as a page of their own: the caller then pays for a response that is too long
   * to be forwarded.
   */
  readonly charged: {
    readonly empty: boolean;
    readonly notFound: boolean;
    readonly failed: boolean;
    readonly tooLong?: boolean;
  };
  /**
   * Dotted path of the results in the response. The lookup found nothing if the value is missing, null, false, 0 or
   * empty.
   */
  readonly results?: string;
  /** The response is not JSON. */
  readonly binary?: boolean;
  /**
   * JSON schema of the body or of the query. Query values are strings, which are converted to the types of the schema.
   */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** A valid body or query, to which the provider responds successfully. */
  readonly example: Readonly<Record<string, unknown>>;
}

const PATH_SEGMENT = '(?!\\.+(?:/|$))(?:[\\w.:-]|\\{\\w+\\})+';
const dottedPath = patternRule('names separated by dots', /^\w+(\.\w+)*$/);
const schemas = new Ajv2020({ strict: false, validateFormats: false, logger: false });
const methods = enumRule(['GET', 'POST'] satisfies readonly DataMethod[]);
const headerValue = patternRule('printable ASCII', /^[ -~]+$/);

const schema: ValidationRule = (value, location) => {
  anyObject(value, location);
  if (schemas.validateSchema(value as object)) return;
  const [{ instancePath = '', message = '' } = {}] = schemas.errors ?? [];
  throw createDataFileError(
    withParent(location, ...instancePath.split('/').slice(1)),
    `is not a valid JSON schema: it ${message}`,
  );
};

const endpoint = objectRule({
  provider: enumRule(DATA_PROVIDERS),
  action: patternRule('lower case words separated by slashes', /^[a-z0-9_-]+(\/[a-z0-9_-]+)*$/),
  method: methods,
  name: text,
  description: text,
  upstream: text,
  path: patternRule('a path of plain names and {fields}', new RegExp(`^(?:/${PATH_SEGMENT})+/?$`)),
  upstreamMethod: optionalRule(methods),
  headers: optionalRule(mapRule(headerValue)),
  always: optionalRule(anyObject),
  baseUsd: amount,
  costUsd: optionalRule(amount),
  source: optionalRule(priceSource),
  margin: factor,
  guessed: optionalRule(flag),
  billed: optionalRule(objectRule({ usd: amount, count: dottedPath, cap: text })),
  caps: optionalRule(mapRule(objectRule({ max: count, default: optionalRule(count) }))),
  charged: objectRule({ empty: flag, notFound: flag, failed: flag, tooLong: optionalRule(flag) }),
  results: optionalRule(dottedPath),
  binary: optionalRule(flag),
  parameters: optionalRule(schema),
  example: anyObject,
});

/** Headers that the HTTP client or the credential sets. */
const RESERVED_HEADERS =
  /^(host|connection|content-.*|transfer-encoding|accept-encoding|authorization|cookie|user-agent)$/;

/** @throws DataFileError that names the endpoint and the field */
export function parseDataEndpoints(data: unknown): readonly DataEndpointFile[] {
  if (!Array.isArray(data)) throw new DataFileError('it must be a list of data endpoints', []);
  for (const [i, entry] of data.entries()) {
    const location = toFieldLocation(describeEndpoint(entry, i), i);
    endpoint(entry, location);
    assertConsistentDataEndpoint(entry, location);
  }
  const twice = findDuplicate(data.map(toDataPath));
  if (twice) throw new DataFileError(`data endpoint "${twice[0]}" is defined twice`, [twice[1], 'action']);
  return data;
}

function describeEndpoint(entry: Partial<DataEndpointFile> | undefined, index: number): string {
  return isText(entry?.provider) && isText(entry?.action)
    ? `data endpoint "${entry.provider}/${entry.action}"`
    : `data endpoint ${index + 1}`;
}

function assertConsistentDataEndpoint(file: DataEndpointFile, location: FieldLocation): void {
  const { provider, method, path, headers = {}, caps = {}, example, charged, results } = file;
  if (provider === SOCIAL_PROVIDER && method !== 'GET')
    throw createDataFileError(withParent(location, 'method'), `must be GET for ${SOCIAL_PROVIDER}`);
  for (const name of Object.keys(headers))
    if (!/^[a-z0-9-]+$/.test(name) || RESERVED_HEADERS.test(name))
      throw createDataFileError(
        withParent(location, 'headers', name),
        'must be a lower case name of a header that is not reserved',
      );
  for (const [field, { max, default: defaultValue = max }] of Object.entries(caps))
    if (defaultValue > max)
      throw createDataFileError(withParent(location, 'caps', field, 'default'), 'must not exceed the cap');
  for (const [, field = ''] of path.matchAll(/\{(\w+)\}/g))
    if (!isText(example[field]))
      throw createDataFileError(
        withParent(location, 'example'),
        `must have the string field ${field}, which is part of its path`,
      );
  if (!charged.empty && results === undefined)
    throw createDataFileError(
      withParent(location, 'results'),
      'is required if the provider does not charge for empty results',
    );
  assertCostCovered(file, location);
}

/** Checks that the price of a lookup covers its cost, even if the provider invoices the maximum number of results. */
function assertCostCovered(
  { baseUsd, costUsd = baseUsd, billed, caps = {}, margin }: DataEndpointFile,
  location: FieldLocation,
): void {
  if (Number(margin) < 1)
    throw createDataFileError(withParent(location, 'margin'), 'must not be below 1: it would sell below cost');
  if (money.parseUsd(costUsd) > money.parseUsd(baseUsd))
    throw createDataFileError(withParent(location, 'costUsd'), 'must not exceed baseUsd');
  if (!billed) return;
  const cap = Object.hasOwn(caps, billed.cap) ? caps[billed.cap] : undefined;
  if (!cap) throw createDataFileError(withParent(location, 'billed', 'cap'), 'must name a field that has a cap');
  if (money.parseUsd(billed.usd) * BigInt(cap.max) > money.parseUsd(baseUsd))
    throw createDataFileError(
      withParent(location, 'billed', 'usd'),
      `must not exceed baseUsd in total for ${cap.max} results`,
    );
}

/**
 * Checks that every data endpoint refers to an existing provider with a credential.
 * @throws DataFileError with a path that starts with the index of the endpoint
 */
export function assertDataProvidersExist(
  endpoints: readonly DataEndpointFile[],
  providers: readonly ProviderFile[],
): readonly DataEndpointFile[] {
  for (const [i, entry] of endpoints.entries()) {
    const location = withParent(toFieldLocation(describeEndpoint(entry, i), i), 'upstream');
    const provider = providers.find(({ slug }) => slug === entry.upstream);
    if (!provider) throw createDataFileError(location, `names the provider "${entry.upstream}", which does not exist`);
    if (!provider.credential)
      throw createDataFileError(
        location,
        `names the provider "${entry.upstream}", which does not specify how its key is sent`,
      );
  }
  return endpoints;
}
