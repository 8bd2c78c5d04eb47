/** Responds in the common error format to input that never reaches a route, then closes the connection. */
import { randomUUID } from 'node:crypto';
import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { DEFAULT_ERROR_FORMAT } from './error-formats.ts';
import { INTERNAL_ERROR, toErrorResponse } from './errors.ts';

/** Time for the client to read the response and to close its side, before the connection is destroyed. */
const CLOSE_DELAY_MS = 3_000;

type HttpRejection = readonly [status: number, message: string];

const INVALID_HTTP: HttpRejection = [400, 'The request is not valid HTTP'];
const PROXY_NOT_SUPPORTED: HttpRejection = [400, 'Proxy requests are not supported'];
const UNSUPPORTED_EXPECTATION: HttpRejection = [417, 'Expect must be 100-continue'];

/** Errors of Node's HTTP server that get another status than 400. */
const PARSER_ERRORS: Readonly<Record<string, HttpRejection>> = {
  HPE_HEADER_OVERFLOW: [431, 'The URL and the headers of the request are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request took too long to arrive'],
};

export class MalformedRequestHandlers {
  /** @param headers headers that every response has */
  constructor(private readonly headers: Readonly<Record<string, string>>) {}

  /** Implements Fastify's `clientErrorHandler`. */
  readonly handleClientError = ({ code = '' }: Error & { readonly code?: string }, socket: Socket): void => {
    // A connection that was reset can get no response. One that was opened in advance and never used must get none: its
    // client would take a response to nothing for the response to its first request.
    if (code === 'ECONNRESET' || socket.bytesRead === 0) return void socket.destroy();
    sendRejection(PARSER_ERRORS[code] ?? INVALID_HTTP, socket, this.headers);
  };

  /** Rejects CONNECT and unknown expectations with a message, which Node's own rejections do not have. */
  register(server: Server): void {
    server.on('connect', (_request, socket) => sendRejection(PROXY_NOT_SUPPORTED, socket as Socket, this.headers));
    server.on('checkExpectation', ({ socket }) => sendRejection(UNSUPPORTED_EXPECTATION, socket, this.headers));
  }
}

function sendRejection(
  [status, message]: HttpRejection,
  socket: Socket,
  headers: Readonly<Record<string, string>>,
): void {
  if (!socket.writable) return void socket.destroy();
  const requestId = randomUUID();
  const error = toErrorResponse(Object.assign(new Error(message), { statusCode: status })) ?? INTERNAL_ERROR;
  const body = JSON.stringify(DEFAULT_ERROR_FORMAT.createBody(error, requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    // Without this header browsers hide the response.
    'access-control-allow-origin: *',
    'cache-control: no-store',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // Otherwise a client that never closes its side would hold the connection open.
  setTimeout(() => socket.destroy(), CLOSE_DELAY_MS).unref();
}
