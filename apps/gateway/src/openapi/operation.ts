/**
 * What a route says about itself. The document, the page and the contract test are made of it, and the hooks that find the
 * caller and limit the body.
 */
import { applyDecorators } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { ErrorFormatName } from '../edge/errors/error-formats.ts';
import type { RateLimitedAction } from '../edge/limits/rate-limited-actions.ts';
import type { UploadOptions } from '../edge/uploads/upload.ts';

/** A JSON Schema of the 2020-12 dialect, as OpenAPI 3.1 has it. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** A class whose fields are checked by `valid()`, or that only describes them with `@Field`. */
export type Dto = new () => object;

/** Schemas by media type. */
export type Content = Readonly<Record<string, JsonSchema>>;

/**
 * Permitted callers: anyone; anyone, where a credential that is sent must be good; a caller with a key or the account's id;
 * or only the account by its own id.
 */
export type Auth = 'public' | 'optional' | 'key' | 'account';

export const TAGS = {
  Inference: 'Paid use of models. Money is held before a model is called, and the exact cost is charged afterwards.',
  Media: 'Files that were made, by signed addresses.',
  Data: 'Lookups at vendors of data, each at a fixed price.',
  Models: 'Models and their prices.',
  'Private models':
    'Models whose ids begin with private/, in enclaves that prove what they run. Requests are encrypted for the enclave before they leave your machine: the local encrypting proxy does that, at http://127.0.0.1:8787, for clients of OpenAI and Anthropic. No other route serves these models. GET /v1/models?type=all lists them.',
  Account: 'Accounts and their balance.',
  Keys: 'API keys of an account, with their limits.',
  'Top-ups': 'Funding an account.',
  History: 'Queries and their cost.',
  Service: 'Health and description of the service.',
} as const;

export interface OperationOptions {
  /** Unique: generated clients name their functions after it. */
  readonly id: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly description?: string;
  readonly auth: Auth;
  /** How its clients read errors, where that follows from the route and not from the client. */
  readonly errorFormat?: ErrorFormatName;
  /** Where the account may be named by its `credit_id`, beside the credentials in headers. */
  readonly creditIdLocation?: 'query' | 'body';
  /** A paid operation: it accepts an Idempotency-Key, and its answer has a generation id. */
  readonly paid?: true;
  /** Its answer says in a header what was charged. */
  readonly priced?: true;
  /** Its body has at most so many bytes. */
  readonly maxBytes?: number;
  /** Without any credential it is paid for by the request: its caller is asked for a payment, and repeats it with the proof. */
  readonly payPerRequest?: true;
  /** A proof of payment is a credential here, whatever it was used for. */
  readonly acceptsProof?: true;
  /** Its body is that of a paid operation, and may be as large. */
  readonly largeBody?: true;
  /** Its body is handed over as the bytes that came: what sends it signs them. */
  readonly raw?: true;
  /** Its body is handed over as a stream, as it comes, whatever its sender calls it. */
  readonly streamed?: true;
  /** Its body is `multipart/form-data` with these files; `body` says what its fields are. */
  readonly upload?: UploadOptions;
  /** It creates something that costs nothing: it accepts an Idempotency-Key. */
  readonly creates?: true;
  /** It gives something for nothing that is kept for ever: how often is limited. */
  readonly rateLimitedAction?: RateLimitedAction;
  /** It reads what follows from an account's facts, and says when that may be older than these. */
  readonly readsAccountEvents?: true;
  /** Every parameter in the path, in order; a wildcard takes the name that stands in its place. */
  readonly params?: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  /** Headers that it needs beside the usual ones. */
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  readonly query?: Dto;
  readonly body?: Dto;
  /** A query or body that succeeds: it is shown on the page and sent by the contract test. */
  readonly example?: Readonly<Record<string, unknown>>;
  readonly response: Content;
  /** Statuses of errors that this operation has beside those that follow from `auth` and the method. */
  readonly errors?: readonly number[];
  /** Statuses that are answered with something else than an error. */
  readonly otherResponses?: Readonly<Record<number, Content>>;
}

const OPTIONS_KEY = Symbol('operation');

/** Documents the route that it decorates. */
export function Operation(options: OperationOptions): MethodDecorator {
  const attachOptions: MethodDecorator = (controller, method) =>
    Reflect.defineMetadata(OPTIONS_KEY, options, controller, method);
  return applyDecorators(attachOptions, RouteConfig({ operation: options }));
}

export function getOperationOptions(prototype: object, method: string): OperationOptions | undefined {
  return Reflect.getMetadata(OPTIONS_KEY, prototype, method);
}

const schemaNames = new WeakMap<JsonSchema, string>();

/** Makes a schema a component: wherever it is used, the document refers to it by its name. */
export function nameSchema<T extends JsonSchema>(name: string, schema: T): T {
  schemaNames.set(schema, name);
  return schema;
}

export function getSchemaName(schema: object): string | undefined {
  return schemaNames.get(schema as JsonSchema);
}

export function jsonContent(schema: JsonSchema): Content {
  return { 'application/json': schema };
}

/** Server-sent events; `schema` is that of what one event carries. */
export function sseContent(schema: JsonSchema): Content {
  return { 'text/event-stream': schema };
}
