/** Lookups at vendors of data, as they stand in a data file: places, people, pages, posts. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { money } from '#kernel';
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

/**
 * The classes of vendors, as paths and the books name them. The specification leaves their names open: this is the one
 * place that chooses them.
 */
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

/** The social network, whose lookups have a prefix of their own and are read only. */
export const SOCIAL_PROVIDER: DataProvider = 'x';

/** Where clients find a lookup, below `/v1`. */
export function toDataPath({ provider, action }: Pick<DataEndpointFile, 'provider' | 'action'>): string {
  return provider === SOCIAL_PROVIDER ? `/data/${provider}/${action}` : `/data/api/${provider}/${action}`;
}

export type DataMethod = 'GET' | 'POST';

/** Of a number: the most it may be, and what is sent where a request has none. Of a list: how many it may have. */
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
  /** The vendor's slug. */
  readonly upstream: string;
  /** The vendor's. `{field}` stands for a field of the request, which then is not sent with the others. */
  readonly path: string;
  /** How the vendor is asked, where it differs: fields of a body become those of a query. */
  readonly upstreamMethod?: DataMethod;
  /** What the vendor is sent besides, such as which fields it shall answer with. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Fields of the request that are ours to say, such as what would change its price. */
  readonly always?: Readonly<Record<string, unknown>>;
  /** USD for a lookup, before the margin. */
  readonly baseUsd: string;
  readonly margin: string;
  /** The specification has no price for it. */
  readonly guessed?: boolean;
  /** The vendor invoices so many USD for each result, and not the base: `count` is where the answer has them, `cap` the field that bounds them. */
  readonly billed?: { readonly usd: string; readonly count: string; readonly cap: string };
  /** By the dotted path of the field in a body, by its name in a query. */
  readonly caps?: Readonly<Record<string, FieldCap>>;
  /**
   * Whether the vendor invoices a lookup that finds nothing, one that it answers with 404, and one that fails. `tooLong`: the
   * caller chooses what is read, such as a page of their own, and pays for an answer that is too long to pass on.
   */
  readonly charged: {
    readonly empty: boolean;
    readonly notFound: boolean;
    readonly failed: boolean;
    readonly tooLong?: boolean;
  };
  /** Where an answer has its results, as a dotted path: nothing was found when that is missing, null, false, 0 or empty. */
  readonly results?: string;
  /** It answers with something else than JSON. */
  readonly binary?: boolean;
  /** JSON schema of the body; of the query, whose values are texts and are read as what the schema says they are. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** A body or a query that has an answer. */
  readonly example: Readonly<Record<string, unknown>>;
}

const PATH_SEGMENT = '(?!\\.+(?:/|$))(?:[\\w.:-]|\\{\\w+\\})+';
const dottedPath = patternRule('names with dots between them', /^\w+(\.\w+)*$/);
const schemas = new Ajv2020({ strict: false, validateFormats: false, logger: false });
const methods = enumRule(['GET', 'POST'] satisfies readonly DataMethod[]);
const headerValue = patternRule('printable ASCII', /^[ -~]+$/);

const schema: ValidationRule = (value, location) => {
  anyObject(value, location);
  if (schemas.validateSchema(value as object)) return;
  const [{ instancePath = '', message = '' } = {}] = schemas.errors ?? [];
  throw createDataFileError(
    withParent(location, ...instancePath.split('/').slice(1)),
    `is no JSON schema: it ${message}`,
  );
};

const endpoint = objectRule({
  provider: enumRule(DATA_PROVIDERS),
  action: patternRule('lower case words with slashes between them', /^[a-z0-9_-]+(\/[a-z0-9_-]+)*$/),
  method: methods,
  name: text,
  description: text,
  upstream: text,
  path: patternRule('a path of plain names and {fields}', new RegExp(`^(?:/${PATH_SEGMENT})+/?$`)),
  upstreamMethod: optionalRule(methods),
  headers: optionalRule(mapRule(headerValue)),
  always: optionalRule(anyObject),
  baseUsd: amount,
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

/** Headers that the connection or the credential sets. */
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
  if (twice) throw new DataFileError(`data endpoint "${twice[0]}" is there twice`, [twice[1], 'action']);
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
        'is no header that may be said here, in lower case',
      );
  for (const [field, { max, default: defaultValue = max }] of Object.entries(caps))
    if (defaultValue > max)
      throw createDataFileError(withParent(location, 'caps', field, 'default'), 'must not be above the cap');
  for (const [, field = ''] of path.matchAll(/\{(\w+)\}/g))
    if (!isText(example[field]))
      throw createDataFileError(withParent(location, 'example'), `must have the text ${field} of its path`);
  if (!charged.empty && results === undefined)
    throw createDataFileError(
      withParent(location, 'results'),
      'must say where results are, where the vendor does not charge for none',
    );
  assertCostCovered(file, location);
}

/** What is sold by the lookup and invoiced by the result must be worth it however many there are. */
function assertCostCovered({ baseUsd, billed, caps = {}, margin }: DataEndpointFile, location: FieldLocation): void {
  if (Number(margin) < 1)
    throw createDataFileError(withParent(location, 'margin'), 'must not be below 1: it would sell below cost');
  if (!billed) return;
  const cap = Object.hasOwn(caps, billed.cap) ? caps[billed.cap] : undefined;
  if (!cap) throw createDataFileError(withParent(location, 'billed', 'cap'), 'must be a field that has a cap');
  if (money.parseUsd(billed.usd) * BigInt(cap.max) > money.parseUsd(baseUsd))
    throw createDataFileError(
      withParent(location, 'billed', 'usd'),
      `must not come to more than the base for ${cap.max} results`,
    );
}

/**
 * Every data endpoint is reached by a vendor that is there and says how its key is sent.
 * @throws DataFileError whose path begins with the index of the endpoint
 */
export function assertDataProvidersExist(
  endpoints: readonly DataEndpointFile[],
  providers: readonly ProviderFile[],
): readonly DataEndpointFile[] {
  for (const [i, entry] of endpoints.entries()) {
    const location = withParent(toFieldLocation(describeEndpoint(entry, i), i), 'upstream');
    const provider = providers.find(({ slug }) => slug === entry.upstream);
    if (!provider) throw createDataFileError(location, `names the provider "${entry.upstream}", which is not there`);
    if (!provider.credential)
      throw createDataFileError(
        location,
        `names the provider "${entry.upstream}", which does not say how its key is sent`,
      );
  }
  return endpoints;
}
