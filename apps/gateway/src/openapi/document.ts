/** Creates the OpenAPI 3.1 document from the routes and their operation options. */
import { MULTIPART } from '../edge/uploads/multipart.ts';
import type { UploadOptions } from '../edge/uploads/upload.ts';
import { Components, type DocumentedResponse } from './components.ts';
import { IDEMPOTENCY_KEY_PARAMETER, QUERY_SOURCE_PARAMETER, RESPONSE_HEADERS } from './headers.ts';
import { type Auth, type Dto, type JsonSchema, nameSchema, type OperationOptions, TAGS } from './operation.ts';
import { createRequestSchema } from './request-schema.ts';
import type { ControllerRoute } from './routes.ts';

/** The version of the API, not of the software. */
const API_VERSION = '1.0.0';
const DESCRIPTION = `A prepaid gateway to many AI models, compatible with OpenAI's API: change a client's base URL and its key.

Amounts of money are in plain decimal notation: JSON numbers, or strings where OpenRouter's API has strings. Unknown
fields in requests are ignored, and responses may contain further fields in the future. All operations of a protocol
share one error format. A known path with an unsupported method returns 405 and \`Allow\`.`;

const SECURITY_SCHEMES = {
  bearer: { type: 'http', scheme: 'bearer', description: 'An API key' },
  'api-key': { type: 'apiKey', in: 'header', name: 'api-key', description: 'An API key' },
  'x-api-key': { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key' },
  'x-credit-id': {
    type: 'apiKey',
    in: 'header',
    name: 'x-credit-id',
    description: 'The credit_id of the account',
  },
  payment: {
    type: 'http',
    scheme: 'Payment',
    description:
      'The proof of a payment for one request, or an L402 credential. An operation that can be paid per request responds to a request without any credential with 402, and WWW-Authenticate contains the challenge to pay',
  },
} as const;

const CREDENTIALS: Readonly<Record<Auth, readonly (keyof typeof SECURITY_SCHEMES)[]>> = {
  public: [],
  optional: ['bearer', 'api-key', 'x-api-key', 'x-credit-id'],
  key: ['bearer', 'api-key', 'x-api-key', 'x-credit-id'],
  account: ['x-credit-id'],
};

/** Statuses of every operation. */
const COMMON_STATUSES = [400, 500];
const CREDENTIAL_STATUSES = [401, 429, 503];
/** Statuses of operations that are rate-limited because they are free. */
const RATE_LIMIT_STATUSES = [429, 503];
const BODY_STATUSES = [413, 415];
const UPLOAD_STATUSES = [408];
/**
 * Statuses of operations that accept API keys, which can be blocked. With pay-per-request also for a payment whose
 * request was attempted too often.
 */
const KEY_STATUSES = [403];
/** The body of a streamed operation, which the gateway does not parse. */
const BINARY_REQUEST_BODY = {
  required: true,
  content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
};
const METHODS_WITH_BODY = ['post', 'put', 'patch'];
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, PathOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly responses: Readonly<Record<string, DocumentedResponse>>;
    readonly headers: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
    readonly securitySchemes: Readonly<Record<string, JsonSchema>>;
  };
}

export interface PathOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  /** The operation that this one is an alias of. */
  readonly 'x-alias-of'?: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;
  };
  readonly responses: Readonly<Record<string, DocumentedResponse | { readonly $ref: string }>>;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
}

/** @param url where clients reach the API */
export function createOpenApiDocument(routes: readonly ControllerRoute[], url: string): OpenApiDocument {
  const components = new Components();
  const paths: Record<string, Record<string, PathOperation>> = {};
  for (const route of routes) {
    const { options } = route;
    if (!options) continue;
    const operation = toPathOperation(route, options, components);
    route.paths
      .map((path) => toPathTemplate(path, options))
      .forEach((path, i) => {
        paths[path] = { ...paths[path], [route.method]: i === 0 ? operation : createAlias(operation, i) };
      });
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Countinghouse', version: API_VERSION, description: DESCRIPTION },
    servers: [{ url }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: components.schemas,
      responses: components.responses,
      headers: RESPONSE_HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

/** Converts `/keys/:id` to `/keys/{id}`. Parameters and wildcards get their names from `params`, in order. */
function toPathTemplate(path: string, { params = {} }: OperationOptions): string {
  const names = Object.keys(params);
  let next = 0;
  return path.replaceAll(/:\w+|\*/g, () => `{${names[next++]}}`);
}

function createAlias(operation: PathOperation, number: number): PathOperation {
  const { operationId } = operation;
  const suffix = number === 1 ? 'Alias' : `Alias${number}`;
  return { ...operation, operationId: operationId + suffix, 'x-alias-of': operationId };
}

function toPathOperation(route: ControllerRoute, options: OperationOptions, components: Components): PathOperation {
  const { id, tag, summary, description, body, query } = options;
  const fields = [body, query].flatMap((type) => (type ? Object.keys(getProperties(createRequestSchema(type))) : []));
  const inFields = options.auth === 'key' && fields.includes('credit_id');
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    // No header is required if the credit id may be sent in a field.
    security: [
      ...(options.auth === 'optional' ? [{}] : []),
      ...listSecuritySchemes(options).map((scheme) => ({ [scheme]: [] })),
      ...(inFields ? [{}] : []),
    ],
    parameters: [
      ...listPathParameters(options),
      ...listQueryParameters(options, components),
      ...listHeaderParameters(options),
    ],
    ...(body ? { requestBody: toRequestBody(body, options, components) } : {}),
    ...(options.streamed ? { requestBody: BINARY_REQUEST_BODY } : {}),
    responses: toResponses(route, options, components),
  };
}

/** Omits x-credit-id for paid operations: a credit id pays only if the operator allows this. */
function listSecuritySchemes({
  auth,
  paid,
  payPerRequest: challenge,
  acceptsProof: proof,
}: OperationOptions): readonly string[] {
  const credentials = CREDENTIALS[auth].filter((scheme) => !paid || scheme !== 'x-credit-id');
  return challenge || proof ? [...credentials, 'payment'] : credentials;
}

function listPathParameters({ params = {} }: OperationOptions): Parameter[] {
  return Object.entries(params).map(([name, { description, example }]) => {
    return { name, in: 'path', required: true, description, schema: { type: 'string' }, example };
  });
}

/** A streamed body cannot be compared with that of an earlier request, so its operation has no Idempotency-Key. */
function listHeaderParameters({ paid, creates, streamed, headers = {} }: OperationOptions): Parameter[] {
  const ownParameters = Object.entries(headers).map(([name, { description, example }]) => {
    return { name, in: 'header' as const, required: true, description, schema: { type: 'string' }, example };
  });
  if (paid)
    return [
      ...ownParameters,
      ...(streamed ? [QUERY_SOURCE_PARAMETER] : [IDEMPOTENCY_KEY_PARAMETER, QUERY_SOURCE_PARAMETER]),
    ];
  return creates ? [...ownParameters, IDEMPOTENCY_KEY_PARAMETER] : ownParameters;
}

function listQueryParameters({ query, example }: OperationOptions, components: Components): Parameter[] {
  if (!query) return [];
  const { required = [], ...schema } = createRequestSchema(query);
  return Object.entries(getProperties(schema)).map(([name, { description, ...property }]) => ({
    name,
    in: 'query',
    required: (required as string[]).includes(name),
    ...(typeof description === 'string' ? { description } : {}),
    schema: components.registerSchema(removeNull(property)),
    ...(example && name in example ? { example: example[name] } : {}),
  }));
}

/** Query parameters cannot be null. */
function removeNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values } = schema;
  const [only, ...otherTypes] = [type].flat().filter((typeName) => typeName !== 'null');
  return {
    ...schema,
    ...(type === undefined ? {} : { type: otherTypes.length === 0 ? only : [only, ...otherTypes] }),
    ...(Array.isArray(values) ? { enum: values.filter((value) => value !== null) } : {}),
  };
}

function toRequestBody(body: Dto, { example, upload }: OperationOptions, components: Components) {
  const fields = createRequestSchema(body);
  const createContent = (name: string, schema: JsonSchema, contentExample: OperationOptions['example']) => ({
    schema: components.registerSchema(nameSchema(name, schema)),
    ...(contentExample ? { example: contentExample } : {}),
  });
  const toFormContent = (name: string, files: UploadOptions) =>
    createContent(name, addFileProperties(fields, files), example && { ...toExampleFiles(files), ...example });
  const content =
    upload && !upload.acceptsJson
      ? { [MULTIPART]: toFormContent(body.name, upload) }
      : {
          'application/json': createContent(body.name, fields, example),
          ...(upload ? { [MULTIPART]: toFormContent(`${body.name}Form`, upload) } : {}),
        };
  return { required: fields.required !== undefined || (upload && !upload.acceptsJson) === true, content };
}

/** Adds the files of an upload to the schema of its fields. */
function addFileProperties({ properties, required = [], ...schema }: JsonSchema, upload: UploadOptions): JsonSchema {
  const file = {
    type: 'string',
    contentMediaType: 'application/octet-stream',
    description: `A file of at most ${upload.maxBytes} bytes`,
  };
  return {
    ...schema,
    properties: { ...Object.fromEntries(upload.files.map((name) => [name, file])), ...(properties as object) },
    required: [...listRequiredFiles(upload), ...(required as string[])],
  };
}

function listRequiredFiles({ files, optional = [] }: UploadOptions): readonly string[] {
  return files.filter((name) => !optional.includes(name));
}

/** Formats the required files in the notation of curl, such as `@image`. */
function toExampleFiles(upload: UploadOptions): Readonly<Record<string, string>> {
  return Object.fromEntries(listRequiredFiles(upload).map((name) => [name, `@${name}`]));
}

function toResponses(
  route: ControllerRoute,
  options: OperationOptions,
  components: Components,
): PathOperation['responses'] {
  const { auth, response, errors = [], otherResponses = {} } = options;
  const statuses = [
    ...COMMON_STATUSES,
    ...(auth === 'public' ? [] : CREDENTIAL_STATUSES),
    ...(METHODS_WITH_BODY.includes(route.method) ? BODY_STATUSES : []),
    ...(options.upload ? UPLOAD_STATUSES : []),
    ...(auth === 'key' || auth === 'optional' ? KEY_STATUSES : []),
    ...(options.rateLimitedAction ? RATE_LIMIT_STATUSES : []),
    ...errors,
  ];
  const contents = Object.entries({ [route.status]: response, ...otherResponses });
  return {
    ...Object.fromEntries(statuses.map((status) => [status, components.registerErrorResponse(status, options)])),
    ...Object.fromEntries(
      contents.map(([status, content]) => [status, components.createResponse(Number(status), content, options)]),
    ),
  };
}

function getProperties(schema: JsonSchema): Readonly<Record<string, JsonSchema>> {
  return (schema.properties ?? {}) as Record<string, JsonSchema>;
}
