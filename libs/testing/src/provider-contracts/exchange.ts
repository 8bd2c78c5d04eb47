/** Checks what connectors send to the sandbox, and what it sends back, against the contracts of the simulated providers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ContractDeviation, checkMessage, checkTextFields, hasContract, type TextField } from './contract.ts';

/** A request to a provider and its response. */
export interface ProviderExchange {
  /** Path at the sandbox, such as `/groq/v1/chat/completions`. */
  readonly path: string;
  /** The query parameters, such as `alt=sse`. */
  readonly query?: string;
  readonly requestBody: string;
  readonly status: number;
  readonly responseBody: string;
}

/** Operations by their paths; `$1` is the first group of the path. Others are named by their path. */
const OPERATIONS: readonly (readonly [path: RegExp, operation: string])[] = [
  [/\/chat\/completions$/, 'chat'],
  [/\/responses$/, 'responses'],
  [/\/messages$/, 'messages'],
  [/\/embeddings$/, 'embeddings'],
  [/\/images\/generations$/, 'images'],
  [/\/images\/edits$/, 'imageEdits'],
  [/\/(?:audio\/speech|text-to-speech\/[^/]+(?:\/stream)?)$/, 'speech'],
  [/\/audio\/transcriptions$/, 'transcriptions'],
  [/^\/deepgram\/v1\/(listen|speak)$/, '$1'],
  [/:(?:generateContent|streamGenerateContent)$/, 'generateContent'],
  [/:predictLongRunning$/, 'predictLongRunning'],
  [/\/operations\/[^/]+$/, 'operation'],
  [/^\/fal\/[^/]+\/[^/]+\/requests\/[^/]+\/(status|cancel)$/, '$1'],
  [/^\/fal\/([^/]+\/[^/]+\/requests)\/[^/]+$/, '$1'],
  [/^\/google-maps\/v1\/places\/[^/:]+$/, 'location'],
  [/^\/[^/]+\/(.+?)\/?$/, '$1'],
];

/** Faults that break a response on purpose. Requests with one of the other faults have regular errors. */
const BREAKS_RESPONSE = /\bfault=(?!400|429|500|overloaded)/;

/**
 * A request that the provider rejects as invalid is not checked: customers may send invalid values, which connectors
 * leave to the provider.
 * @returns undefined if there is no contract for this operation
 */
export function checkExchange(exchange: ProviderExchange): readonly ContractDeviation[] | undefined {
  const { path, query = '', requestBody, status, responseBody } = exchange;
  const [, provider = ''] = path.split('/');
  const operation = findOperation(path);
  if (!hasContract(provider, operation)) return undefined;
  const check = (name: string, value: unknown) => checkMessage(provider, name, value) ?? [];
  const isRejected = status === 400 || status === 422;
  const sent = isRejected ? [] : checkRequest(provider, operation, exchange);
  if (BREAKS_RESPONSE.test(requestBody) || BREAKS_RESPONSE.test(decodeURIComponent(query))) return sent;
  if (/^(event|data): /.test(responseBody)) {
    return [...sent, ...parseEvents(responseBody).flatMap((event) => check(`${operation}Event`, event))];
  }
  if (!responseBody.startsWith('{')) return sent;
  return [...sent, ...check(status < 400 ? `${operation}Response` : 'error', parse(responseBody))];
}

function findOperation(path: string): string {
  for (const [pattern, operation] of OPERATIONS) {
    const match = pattern.exec(path);
    if (match) return operation.replace('$1', match[1] ?? '');
  }
  return path;
}

/** Checks the query parameters and the fields of JSON or of a form. Of files in a form only the names are checked. */
function checkRequest(
  provider: string,
  operation: string,
  { query = '', requestBody }: ProviderExchange,
): readonly ContractDeviation[] {
  const ofQuery = query === '' ? [] : checkTextFields(provider, `${operation}Query`, [...new URLSearchParams(query)]);
  const name = `${operation}Request`;
  const form = parseForm(requestBody);
  const ofBody = form ? checkTextFields(provider, name, form) : checkMessage(provider, name, parse(requestBody));
  return [...ofQuery, ...(ofBody ?? [])];
}

/**
 * Records a request to the sandbox and its response, without any effect on either.
 * @param onComplete called once both are complete; not for a connection that breaks off
 */
export function recordExchange(
  request: IncomingMessage,
  response: ServerResponse,
  onComplete: (exchange: ProviderExchange) => void,
): void {
  const sent: Buffer[] = [];
  const received: Buffer[] = [];
  const { emit } = request;
  request.emit = ((event: string, chunk: Buffer, ...rest: never[]) => {
    if (event === 'data') sent.push(chunk);
    return emit.call(request, event, chunk, ...rest);
  }) as typeof emit;
  const { write, end } = response;
  const record = (chunk: unknown) => {
    if (typeof chunk === 'string' || chunk instanceof Uint8Array) received.push(Buffer.from(chunk as string));
  };
  response.write = ((chunk: string, ...rest: [BufferEncoding]) => {
    record(chunk);
    return write.call(response, chunk, ...rest);
  }) as typeof write;
  response.end = ((chunk: unknown, ...rest: [BufferEncoding]) => {
    record(chunk);
    return end.call(response, chunk, ...rest);
  }) as typeof end;
  response.once('finish', () => {
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const [requestBody = '', responseBody = ''] = [sent, received].map((chunks) => Buffer.concat(chunks).toString());
    onComplete({ path, query, requestBody, status: response.statusCode, responseBody });
  });
}

/** @returns the fields of a multipart form, or undefined for another body */
function parseForm(body: string): readonly TextField[] | undefined {
  const boundary = /^--\S+(?=\r\n)/.exec(body)?.[0];
  if (boundary === undefined) return undefined;
  return body.split(boundary).flatMap((part): readonly TextField[] => {
    const [, name, text] = /name="([^"]*)"[\s\S]*?\r\n\r\n([\s\S]*)\r\n$/.exec(part) ?? [];
    return name === undefined || text === undefined ? [] : [[name, text]];
  });
}

function parseEvents(text: string): readonly unknown[] {
  return text.split('\n').flatMap((line) => {
    const data = line.startsWith('data: ') ? line.slice('data: '.length) : '';
    return data === '' || data === '[DONE]' ? [] : [parse(data)];
  });
}

/** Returns undefined for text that is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // invalid JSON
  }
}
