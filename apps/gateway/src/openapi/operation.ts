/**
 * The declared options of a route. They define the OpenAPI document, its page and the contract test, and the hooks that
 * identify the caller and limit the body.
 */
import { applyDecorators } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { ErrorFormatName } from '../edge/errors/error-formats.ts';
import type { RateLimitedAction } from '../edge/limits/rate-limited-actions.ts';
import type { UploadOptions } from '../edge/uploads/upload.ts';

/** A JSON Schema of the 2020-12 dialect, which OpenAPI 3.1 uses. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** A class whose fields `validateDto` checks, or that only describes them with `@Field`. */
export type Dto = new () => object;

/** Schemas by media type. */
export type Content = Readonly<Record<string, JsonSchema>>;

/**
 * Permitted callers: anyone (`public`); anyone, but a credential must be valid if one is sent (`optional`); a caller
 * with an API key or the credit id of the account (`key`); or only the account by its x-credit-id, with or without one
 * of its keys (`account`).
 */
export type Auth = 'public' | 'optional' | 'key' | 'account';

export const TAGS = {
  Inference:
    'Use of models. A paid operation holds money before it calls a model, and then charges the cost, at most what is held. Estimates of tokens and operations on stored responses are free.',
  Media: 'Images, the status of videos, and generated files under signed URLs.',
  Data: 'Lookups at data providers, each at a fixed price.',
  Models: 'Models and their prices.',
  'Private models':
    'Models whose ids begin with private/. They run in attested enclaves. Requests are encrypted for the enclave before they leave your computer: the local proxy at http://127.0.0.1:8787 does this for clients of OpenAI and Anthropic. No other route serves these models. GET /v1/models?type=all lists them.',
  Account: 'Accounts and their balance.',
  Keys: 'API keys of an account, with their limits.',
  'Top-ups': 'Funding an account.',
  History: 'The query history with costs.',
  Service: 'Health and description of the service.',
} as const;

export interface OperationOptions {
  /** Must be unique: generated clients name their functions after it. */
  readonly id: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly description?: string;
  readonly auth: Auth;
  /** The error format of the route's protocol; without it the format depends on the client. */
  readonly errorFormat?: ErrorFormatName;
  /** Responses and errors have Anthropic's format if the request has the header `anthropic-version`. */
  readonly sharedWithAnthropic?: true;
  /** Where `credit_id` may name the account, in addition to the credentials in headers. */
  readonly creditIdLocation?: 'query' | 'body';
  /** The operation is paid. It accepts an Idempotency-Key unless it is `streamed`; its response has a generation id. */
  readonly paid?: true;
  /** The response reports in a header what was charged. */
  readonly priced?: true;
  /**
   * The request can contain a web search. If a model of the free tier does not make it, the response says so in a
   * header.
   */
  readonly searches?: true;
  /**
   * Caches may store a successful response to a caller without a credential: it is the same for everyone, or has a
   * `cache-control` of its own.
   */
  readonly cacheable?: true;
  /** Limit of the body. The default depends on the other options. */
  readonly maxBytes?: number;
  /**
   * Accepts anonymous callers: a request without the credential of an account gets a challenge, and is repeated with
   * the proof of payment.
   */
  readonly payPerRequest?: true;
  /** Accepts a proof as the credential, whatever the payment was used for. */
  readonly acceptsProof?: true;
  /** The body is that of a paid operation and has the same limit, although the operation is free. */
  readonly largeBody?: true;
  /** The controller receives the unparsed bytes, because the sender signs them. */
  readonly raw?: true;
  /** The controller receives the body as a stream while it arrives, whatever its content type. */
  readonly streamed?: true;
  /** The body is `multipart/form-data` with these files; `body` describes its fields. */
  readonly upload?: UploadOptions;
  /** The operation creates something for free: it accepts an Idempotency-Key. */
  readonly creates?: true;
  /** The operation is free but stores something permanently or occupies a third party, so it is rate limited. */
  readonly rateLimitedAction?: RateLimitedAction;
  /** The response may say when to poll, because a job is not finished yet. */
  readonly polled?: true;
  /** The response depends on the events of an account, and reports in a header if it may not include all of them. */
  readonly readsAccountEvents?: true;
  /** All parameters and wildcards of the path, in its order. */
  readonly params?: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  /** Required headers in addition to the usual ones. */
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  readonly query?: Dto;
  readonly body?: Dto;
  /** A query or body that succeeds. The page shows it, and the contract test sends it. */
  readonly example?: Readonly<Record<string, unknown>>;
  readonly response: Content;
  /** Error statuses in addition to those that follow from the other options and the method. */
  readonly errors?: readonly number[];
  /** Further statuses whose response is not an error. */
  readonly otherResponses?: Readonly<Record<number, Content>>;
}

const OPTIONS_KEY = Symbol('operation');

/** Documents the route that it decorates, and configures its hooks. */
export function Operation(options: OperationOptions): MethodDecorator {
  const attachOptions: MethodDecorator = (controller, method) =>
    Reflect.defineMetadata(OPTIONS_KEY, options, controller, method);
  return applyDecorators(attachOptions, RouteConfig({ operation: options }));
}

export function getOperationOptions(prototype: object, method: string): OperationOptions | undefined {
  return Reflect.getMetadata(OPTIONS_KEY, prototype, method);
}

const schemaNames = new WeakMap<JsonSchema, string>();

/** Makes the schema a component, which the document references by this name. */
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

/** Server-sent events whose data matches `schema`. */
export function sseContent(schema: JsonSchema): Content {
  return { 'text/event-stream': schema };
}
