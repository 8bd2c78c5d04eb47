/** Checks what connectors send to the sandbox, and what it sends back, against the contracts of the simulated providers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ContractDeviation, checkMessage } from './contract.ts';

/** A request to a provider and its response. */
export interface ProviderExchange {
  /** Path at the sandbox, such as `/groq/v1/chat/completions`. */
  readonly path: string;
  readonly requestBody: string;
  readonly status: number;
  readonly responseBody: string;
}

/** Operations by the end of their path. */
const OPERATIONS: Readonly<Record<string, string>> = {
  '/chat/completions': 'chat',
  '/responses': 'responses',
  '/messages': 'messages',
  '/embeddings': 'embeddings',
  '/search': 'search',
};

/** Faults that break a response on purpose. Requests with one of the other faults have regular errors. */
const BREAKS_RESPONSE = /\bfault=(?!400|429|500|overloaded)/;

/**
 * A request that the provider rejects as invalid is not checked: customers may send invalid values, which connectors
 * leave to the provider.
 */
export function checkExchange(exchange: ProviderExchange): readonly ContractDeviation[] {
  const { path, requestBody, status, responseBody } = exchange;
  const [, provider = ''] = path.split('/');
  const operation = Object.entries(OPERATIONS).find(([end]) => path.endsWith(end))?.[1];
  if (operation === undefined) return [];
  const check = (name: string, value: unknown) => checkMessage(provider, name, value) ?? [];
  const isRejected = status === 400 || status === 422;
  const sent = isRejected ? [] : check(`${operation}Request`, parse(requestBody));
  if (BREAKS_RESPONSE.test(requestBody)) return sent;
  if (/^(event|data): /.test(responseBody)) {
    return [...sent, ...parseEvents(responseBody).flatMap((event) => check(`${operation}Event`, event))];
  }
  if (!responseBody.startsWith('{')) return sent;
  return [...sent, ...check(status < 400 ? `${operation}Response` : 'error', parse(responseBody))];
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
    const [path = ''] = (request.url ?? '').split('?');
    const [requestBody = '', responseBody = ''] = [sent, received].map((chunks) => Buffer.concat(chunks).toString());
    onComplete({ path, requestBody, status: response.statusCode, responseBody });
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
    return undefined;
  }
}
