/**
 * HTTP routing for the sandbox over `node:http`. It does little work per request, because the sandbox stands in for
 * fast providers.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Log } from '#foundation';
import { InvalidDirectiveError } from './provider/directive.ts';

/** Larger requests get 413. The gateway accepts up to 25 MiB. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

const JSON_TYPE = 'application/json';

type Headers = Readonly<Record<string, string | number>>;
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export type Handler = (call: Call) => void | Promise<void>;

/**
 * Handlers by method and path. The last path segment may be a `:parameter`; a final `*` matches the rest of the path.
 */
export type Routes = Readonly<Partial<Record<`${Method} /${string}`, Handler>>>;

/** An error response. A handler throws it to end a request early. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly status: number;
  readonly body: unknown;
  readonly headers: Headers;

  constructor(status: number, body: unknown, headers: Headers = {}) {
    super(`rejected with status ${status}`);
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

/** The client disconnected before its request was complete. */
class ClientDisconnectedError extends Error {
  override readonly name = 'ClientDisconnectedError';
}

export class Call {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The part of the path that matched the route's `:parameter` or `*`; without meaning for other routes. */
  readonly parameter: string;

  constructor(request: IncomingMessage, response: ServerResponse, parameter: string) {
    this.request = request;
    this.response = response;
    this.parameter = parameter;
  }

  get query(): URLSearchParams {
    const { url = '' } = this.request;
    const start = url.indexOf('?');
    return new URLSearchParams(start < 0 ? '' : url.slice(start + 1));
  }

  async readText(): Promise<string> {
    return (await this.readBody()).toString();
  }

  /** Reads the request body. @throws HttpError 413 if it is too large, ClientDisconnectedError if it breaks off */
  readBody(): Promise<Buffer> {
    const { request } = this;
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let size = 0;
      request.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size <= MAX_BODY_BYTES) chunks.push(chunk);
        else reject(new HttpError(413, { error: 'the body has more than 64 MiB' }, { connection: 'close' }));
      });
      request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
      request.on('error', () => reject(new ClientDisconnectedError()));
    });
  }

  /** Sends a string body as plain text and any other body as JSON. */
  sendError({ status, body, headers }: HttpError): void {
    if (typeof body === 'string') this.sendBytes(status, 'text/plain', Buffer.from(body), headers);
    else this.sendJson(status, body, headers);
  }

  sendJson(status: number, body: unknown, headers: Headers = {}): void {
    this.sendJsonText(status, JSON.stringify(body), headers);
  }

  sendBytes(status: number, type: string, content: Buffer, headers: Headers = {}): void {
    this.response
      .writeHead(status, { 'content-type': type, 'content-length': content.length, ...headers })
      .end(content);
  }

  /** Sends a string that is JSON already. */
  sendJsonText(status: number, json: string, headers: Headers = {}): void {
    this.response
      .writeHead(status, { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(json), ...headers })
      .end(json);
  }
}

export function createListener(routes: Routes, log?: Log): RequestListener {
  const exact = new Map<string, Handler>();
  const withParameter = new Map<string, Handler>();
  const byPrefix: [prefix: string, handler: Handler][] = [];
  for (const [route, handler] of Object.entries(routes)) {
    const colon = route.indexOf(':');
    if (!handler) continue;
    if (route.endsWith('*')) byPrefix.push([route.slice(0, -1), handler]);
    else if (colon < 0) exact.set(route, handler);
    else withParameter.set(route.slice(0, colon), handler);
  }

  return (request, response) => {
    const { url = '/', method = '' } = request;
    const queryStart = url.indexOf('?');
    const path = queryStart < 0 ? url : url.slice(0, queryStart);
    const lastSlash = path.lastIndexOf('/') + 1;
    const handler = exact.get(`${method} ${path}`) ?? withParameter.get(`${method} ${path.slice(0, lastSlash)}`);
    if (handler) return void handleCall(new Call(request, response, path.slice(lastSlash)), handler, log);
    const [prefix, last] = byPrefix.find(([candidate]) => `${method} ${path}`.startsWith(candidate)) ?? [
      '',
      throwUnknownRoute,
    ];
    void handleCall(new Call(request, response, `${method} ${path}`.slice(prefix.length)), last, log);
  };
}

async function handleCall(call: Call, handler: Handler, log: Log | undefined): Promise<void> {
  try {
    await handler(call);
  } catch (error) {
    if (error instanceof ClientDisconnectedError) return;
    if (error instanceof HttpError) return call.sendError(error);
    if (error instanceof InvalidDirectiveError) return call.sendJson(400, createDirectiveErrorBody(error.message));
    log?.error({ err: error, url: call.request.url }, 'request handler failed');
    if (call.response.headersSent) call.response.destroy();
    else call.sendJson(500, { error: 'the sandbox failed; see its log' });
  }
}

/**
 * The body for routes that do not report mistakes in directives in their own format: `error` for clients of OpenAI,
 * `detail` for others.
 */
function createDirectiveErrorBody(message: string) {
  return { error: { message, type: 'invalid_request_error', param: null, code: null }, detail: message };
}

/** Uses OpenAI's error format, because OpenAI's clients are the strictest about errors. */
function throwUnknownRoute({ request: { method, url } }: Call): never {
  const message = `Invalid URL (${method} ${url})`;
  throw new HttpError(404, { error: { message, type: 'invalid_request_error', param: null, code: null } });
}

/** @returns undefined when the text is not a JSON object */
export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined; // invalid JSON
  }
}
