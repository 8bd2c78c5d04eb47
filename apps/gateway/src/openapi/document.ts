/** The OpenAPI 3.1 document, computed from the routes and what they say about themselves. */
import { STATUS_CODES } from 'node:http';
import type { ErrorShapeName } from '../edge/errors/error-formats.ts';
import type { UploadOptions } from '../edge/uploads/upload.ts';
import {
  getResponseHeaders,
  IDEMPOTENCY_KEY,
  QUERY_SOURCE,
  RESPONSE_HEADERS,
  type ResponseHeaderOptions,
} from './headers.ts';
import {
  type Auth,
  type Content,
  type Dto,
  getSchemaName,
  type JsonSchema,
  jsonContent,
  nameSchema,
  type OperationOptions,
  TAGS,
} from './operation.ts';
import { requestSchema } from './request-schema.ts';
import type { ControllerRoute } from './routes.ts';
import { AnthropicErrorSchema, ErrorSchema, PaymentRequiredSchema, text } from './schemas.ts';

/** The version of the interface, not of the program. */
const VERSION = '1.0.0';
const DESCRIPTION = `A prepaid gateway to many AI models, compatible with OpenAI's API: change a client's base URL and its key.

Every amount of money is a bare JSON number in plain decimals. Unknown fields in requests are ignored, and answers
may contain further fields in the future. Every error has one shape; a known path with another method is answered with 405 and \`Allow\`.`;

const SCHEMES = {
  bearer: { type: 'http', scheme: 'bearer', description: 'An API key' },
  'api-key': { type: 'apiKey', in: 'header', name: 'api-key', description: 'An API key' },
  'x-api-key': { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key' },
  'x-credit-id': {
    type: 'apiKey',
    in: 'header',
    name: 'x-credit-id',
    description: 'The credit_id of the account itself',
  },
  payment: {
    type: 'http',
    scheme: 'Payment',
    description:
      'The proof of a payment for this one request, also as L402: without any credential the answer is 402, and says in WWW-Authenticate what is to be paid',
  },
} as const;

const CREDENTIALS: Readonly<Record<Auth, readonly (keyof typeof SCHEMES)[]>> = {
  public: [],
  optional: ['bearer', 'api-key', 'x-api-key', 'x-credit-id'],
  key: ['bearer', 'api-key', 'x-api-key', 'x-credit-id'],
  account: ['x-credit-id'],
};

/** Statuses of every operation. */
const ANYWHERE = [400, 500];
const WITH_CREDENTIAL = [401, 429, 503];
/** Of what is given for nothing. */
const LIMITED = [429, 503];
const WITH_BODY = [413, 415];
const WITH_UPLOAD = [408];
/** Of who pays by the request: one that was tried too often is served no more. */
const WITH_PAYMENT = [403];
/** A body that is nobody's but its sender's. */
const BYTES = {
  required: true,
  content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
};
const TAKE_BODIES = ['post', 'put', 'patch'];
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
  /** The operation that this is another address of. */
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

export interface DocumentedResponse {
  readonly description: string;
  readonly headers?: object;
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

/** @param url where clients reach the API */
export function openApiDocument(routes: readonly ControllerRoute[], url: string): OpenApiDocument {
  const components = new Components();
  const paths: Record<string, Record<string, PathOperation>> = {};
  for (const route of routes) {
    const { notes } = route;
    if (!notes) continue;
    const operation = operationOf(route, notes, components);
    route.paths
      .map((path) => templateOf(path, notes))
      .forEach((path, i) => {
        paths[path] = { ...paths[path], [route.method]: i === 0 ? operation : aliasOf(operation, i) };
      });
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Countinghouse', version: VERSION, description: DESCRIPTION },
    servers: [{ url }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      schemas: components.schemas,
      responses: components.responses,
      headers: RESPONSE_HEADERS,
      securitySchemes: SCHEMES,
    },
  };
}

/** `/keys/:id` is `/keys/{id}`; a wildcard gets the name that the operation gives it. */
function templateOf(path: string, { params = {} }: OperationOptions): string {
  const names = Object.keys(params);
  let next = 0;
  return path.replaceAll(/:\w+|\*/g, () => `{${names[next++]}}`);
}

function aliasOf(operation: PathOperation, number: number): PathOperation {
  const { operationId } = operation;
  const suffix = number === 1 ? 'Alias' : `Alias${number}`;
  return { ...operation, operationId: operationId + suffix, 'x-alias-of': operationId };
}

function operationOf(route: ControllerRoute, notes: OperationOptions, components: Components): PathOperation {
  const { id, tag, summary, description, body, query } = notes;
  const fields = [body, query].flatMap((type) => (type ? Object.keys(propertiesOf(requestSchema(type))) : []));
  const inFields = notes.auth === 'key' && fields.includes('credit_id');
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    // No credential in a header is needed where the account's id may come in a field.
    security: [
      ...(notes.auth === 'optional' ? [{}] : []),
      ...credentialsOf(notes).map((scheme) => ({ [scheme]: [] })),
      ...(inFields ? [{}] : []),
    ],
    parameters: [...pathParameters(notes), ...queryParameters(notes, components), ...headerParameters(notes)],
    ...(body ? { requestBody: requestBody(body, notes, components) } : {}),
    ...(notes.streamed ? { requestBody: BYTES } : {}),
    responses: responsesOf(route, notes, components),
  };
}

/** Models are paid for with a key. */
function credentialsOf({ auth, paid, challenge, proof }: OperationOptions): readonly string[] {
  const credentials = CREDENTIALS[auth].filter((scheme) => !paid || scheme !== 'x-credit-id');
  return challenge || proof ? [...credentials, 'payment'] : credentials;
}

function pathParameters({ params = {} }: OperationOptions): Parameter[] {
  return Object.entries(params).map(([name, { description, example }]) => {
    return { name, in: 'path', required: true, description, schema: { type: 'string' }, example };
  });
}

/** What comes as a stream is not known again, so it has no key of its own. */
function headerParameters({ paid, creates, streamed, headers = {} }: OperationOptions): Parameter[] {
  const own = Object.entries(headers).map(([name, { description, example }]) => {
    return { name, in: 'header' as const, required: true, description, schema: { type: 'string' }, example };
  });
  if (paid) return [...own, ...(streamed ? [QUERY_SOURCE] : [IDEMPOTENCY_KEY, QUERY_SOURCE])];
  return creates ? [...own, IDEMPOTENCY_KEY] : own;
}

function queryParameters({ query, example }: OperationOptions, components: Components): Parameter[] {
  if (!query) return [];
  const { required = [], ...schema } = requestSchema(query);
  return Object.entries(propertiesOf(schema)).map(([name, { description, ...property }]) => ({
    name,
    in: 'query',
    required: (required as string[]).includes(name),
    ...(typeof description === 'string' ? { description } : {}),
    schema: components.refer(withoutNull(property)),
    ...(example && name in example ? { example: example[name] } : {}),
  }));
}

/** Query parameters have no null. */
function withoutNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values } = schema;
  const [only, ...others] = [type].flat().filter((each) => each !== 'null');
  return {
    ...schema,
    ...(type === undefined ? {} : { type: others.length === 0 ? only : [only, ...others] }),
    ...(Array.isArray(values) ? { enum: values.filter((each) => each !== null) } : {}),
  };
}

function requestBody(body: Dto, { example, upload }: OperationOptions, components: Components) {
  const fields = requestSchema(body);
  const schema = upload ? withFiles(fields, upload) : fields;
  const type = upload ? 'multipart/form-data' : 'application/json';
  const shown = upload && example ? { ...exampleFiles(upload), ...example } : example;
  const content = { schema: components.refer(nameSchema(body.name, schema)), ...(shown ? { example: shown } : {}) };
  return { required: schema.required !== undefined, content: { [type]: content } };
}

/** A form with files. */
function withFiles({ properties, required = [], ...schema }: JsonSchema, upload: UploadOptions): JsonSchema {
  const file = {
    type: 'string',
    contentMediaType: 'application/octet-stream',
    description: `A file of at most ${upload.maxBytes} bytes`,
  };
  return {
    ...schema,
    properties: { ...Object.fromEntries(upload.files.map((name) => [name, file])), ...(properties as object) },
    required: [...neededFiles(upload), ...(required as string[])],
  };
}

function neededFiles({ files, optional = [] }: UploadOptions): readonly string[] {
  return files.filter((name) => !optional.includes(name));
}

/** As curl writes that a file is sent. */
function exampleFiles(upload: UploadOptions): Readonly<Record<string, string>> {
  return Object.fromEntries(neededFiles(upload).map((name) => [name, `@${name}`]));
}

function responsesOf(
  route: ControllerRoute,
  notes: OperationOptions,
  components: Components,
): PathOperation['responses'] {
  const { auth, answer, errors = [], others = {} } = notes;
  const statuses = [
    ...ANYWHERE,
    ...(auth === 'public' ? [] : WITH_CREDENTIAL),
    ...(TAKE_BODIES.includes(route.method) ? WITH_BODY : []),
    ...(notes.upload ? WITH_UPLOAD : []),
    ...(notes.challenge ? WITH_PAYMENT : []),
    ...(notes.gives ? LIMITED : []),
    ...errors,
  ];
  const contents = Object.entries({ [route.status]: answer, ...others });
  return {
    ...Object.fromEntries(statuses.map((status) => [status, components.error(status, notes)])),
    ...Object.fromEntries(
      contents.map(([status, content]) => [status, components.response(Number(status), content, notes)]),
    ),
  };
}

/** How an error is described, by its shape: what its name begins with, and what it is. */
const ERRORS: Readonly<Record<ErrorShapeName, { readonly prefix: string; readonly content: Content }>> = {
  openai: { prefix: '', content: jsonContent(ErrorSchema) },
  openrouter: { prefix: '', content: jsonContent(ErrorSchema) },
  anthropic: { prefix: 'Anthropic', content: jsonContent(AnthropicErrorSchema) },
  page: { prefix: 'Page', content: { 'text/html': text('A page that says what went wrong') } },
};

/** What the document refers to by name. */
class Components {
  readonly schemas: Record<string, JsonSchema> = {};
  readonly responses: Record<string, DocumentedResponse> = {};
  private readonly taken = new Map<string, string>();

  error(
    status: number,
    { paid, challenge, creates, streamed, errorShape }: OperationOptions,
  ): { readonly $ref: string } {
    const words = (STATUS_CODES[status] ?? `Status ${status}`).replaceAll(/\W/g, '');
    if (challenge && status === 402) {
      this.responses[`Challenge${words}`] ??= this.response(status, jsonContent(PaymentRequiredSchema), {
        paid,
        challenge,
      });
      return { $ref: `#/components/responses/Challenge${words}` };
    }
    const { prefix, content } = ERRORS[errorShape ?? 'openai'];
    const name = `${prefix}${streamed ? 'Streamed' : ''}${paid ? 'Paid' : creates ? 'Creation' : ''}${words}`;
    const kind = {
      ...(paid ? { paid } : {}),
      ...(streamed ? { streamed } : {}),
      ...(creates ? { creates } : {}),
      ...(errorShape ? { errorShape } : {}),
    };
    this.responses[name] ??= this.response(status, content, kind);
    return { $ref: `#/components/responses/${name}` };
  }

  response(status: number, content: Content, kind: Partial<ResponseHeaderOptions>): DocumentedResponse {
    const headers = ['x-request-id', ...getResponseHeaders(status, kind)];
    return {
      description: STATUS_CODES[status] ?? String(status),
      headers: Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
      content: Object.fromEntries(
        Object.entries(content).map(([type, schema]) => [type, { schema: this.refer(schema) }]),
      ),
    };
  }

  /** The schema with every named one in it, itself included, replaced by a reference. */
  refer(schema: JsonSchema): JsonSchema {
    const name = getSchemaName(schema);
    if (name === undefined) return this.inside(schema);
    const content = JSON.stringify(schema);
    if (this.taken.get(name) === undefined) {
      this.taken.set(name, content);
      this.schemas[name] = this.inside(schema);
    } else if (this.taken.get(name) !== content) throw new Error(`two schemas are called ${name}`);
    return { $ref: `#/components/schemas/${name}` };
  }

  private inside(schema: JsonSchema): JsonSchema {
    return Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, this.within(value)]));
  }

  private within(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((each) => this.within(each));
    return typeof value === 'object' && value !== null ? this.refer(value as JsonSchema) : value;
  }
}

function propertiesOf(schema: JsonSchema): Readonly<Record<string, JsonSchema>> {
  return (schema.properties ?? {}) as Record<string, JsonSchema>;
}
