/** Answers to what never becomes a request here, in the shape of all errors; then the connection ends. */
import { randomUUID } from 'node:crypto';
import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { DEFAULT_ERROR_FORMAT } from './error-formats.ts';
import { INTERNAL_ERROR, toErrorResponse } from './errors.ts';

/** So that the answer is read before the connection ends. */
const CLOSE_DELAY_MS = 3_000;

type HttpRejection = readonly [status: number, message: string];

const INVALID_HTTP: HttpRejection = [400, 'The request is not valid HTTP'];
const PROXY_NOT_SUPPORTED: HttpRejection = [400, 'The request is for a proxy, and this is none'];
const UNSUPPORTED_EXPECTATION: HttpRejection = [417, 'Expect may only be 100-continue'];

/** The codes of Node's HTTP parser that have a status of their own. */
const PARSER_ERRORS: Readonly<Record<string, HttpRejection>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers of the request are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request took too long to arrive'],
};

/** For Fastify's `clientErrorHandler`. */
export function rejectMalformedRequest({ code = '' }: Error & { readonly code?: string }, socket: Socket): void {
  // One that was opened in advance and never used gets no answer: its client would take it for that of its next request.
  if (code === 'ECONNRESET' || socket.bytesRead === 0) return void socket.destroy();
  sendRejection(PARSER_ERRORS[code] ?? INVALID_HTTP, socket);
}

/** What Node would answer without a word, or not at all: a tunnel, and an expectation that nobody knows. */
export function registerUnsupportedRequestHandlers(server: Server): void {
  server.on('connect', (_request, socket) => sendRejection(PROXY_NOT_SUPPORTED, socket as Socket));
  server.on('checkExpectation', ({ socket }) => sendRejection(UNSUPPORTED_EXPECTATION, socket));
}

function sendRejection([status, message]: HttpRejection, socket: Socket): void {
  if (!socket.writable) return void socket.destroy();
  const requestId = randomUUID();
  const error = toErrorResponse(Object.assign(new Error(message), { statusCode: status })) ?? INTERNAL_ERROR;
  const body = JSON.stringify(DEFAULT_ERROR_FORMAT.createBody(error, requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    // A browser shows it to its page.
    'access-control-allow-origin: *',
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  // A client that does not end its own side would keep the connection.
  setTimeout(() => socket.destroy(), CLOSE_DELAY_MS).unref();
}
