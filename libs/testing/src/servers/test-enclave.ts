/** An enclave whose responses are set by tests, and which records the requests that it received. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { request } from 'undici';
import {
  type EnclaveKeys,
  generateKeys,
  KEY_CONFIG_PROBLEM,
  type OpenedRequest,
  openRequest,
  type ResponseSealer,
  sealRequest,
} from '#ehbp';

export const USAGE = 'x-tinfoil-usage-metrics';

export interface DecryptedRequest {
  readonly body: string;
  readonly sealer: ResponseSealer;
  readonly response: ServerResponse;
}

export type EnclaveHandler = (request: DecryptedRequest) => Promise<void> | void;

export class TestEnclave {
  readonly received: { readonly url: string; readonly headers: IncomingHttpHeaders }[] = [];
  /** Number of responses whose connection was closed before the enclave had ended them. */
  abandonedCount = 0;
  handler: EnclaveHandler = () => {};
  private readonly server = createServer((incoming, response) => {
    void this.serve(incoming, response).catch(() => response.destroy()); // the client notices
  });

  private constructor(readonly keys: EnclaveKeys) {}

  static async open(): Promise<TestEnclave> {
    return new TestEnclave(await generateKeys());
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  private async serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    this.received.push({ url: incoming.url ?? '', headers: incoming.headers });
    response.on('close', () => {
      if (!response.writableEnded) this.abandonedCount++;
    });
    const openedRequest = await openRequest(this.keys, String(incoming.headers['ehbp-encapsulated-key']));
    const body = await decryptText(openedRequest, incoming).catch(() => undefined); // encrypted with another key
    if (body === undefined) {
      response.writeHead(422, { 'content-type': 'application/problem+json' });
      response.end(JSON.stringify({ type: KEY_CONFIG_PROBLEM }));
      return;
    }
    await this.handler({ body, sealer: await openedRequest.sealResponse(), response });
  }
}

async function decryptText(openedRequest: OpenedRequest, incoming: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of openedRequest.open(incoming)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Creates an SSE event of a chat completion, of typical length. */
export function createChatEvent(content: string): string {
  const head = { id: 'chatcmpl-0123456789abcdef', object: 'chat.completion.chunk', created: 1_790_000_000 };
  return `data: ${JSON.stringify({ ...head, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
}

/** Responds with one frame per event. If there is a usage report, it is sent as a trailer. */
export function respondWithEvents(events: readonly string[], report?: string): EnclaveHandler {
  return ({ sealer, response }) => {
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'ehbp-response-nonce': sealer.nonce,
      trailer: USAGE,
    });
    for (const event of events) response.write(sealer.seal(Buffer.from(event)));
    if (report !== undefined) response.addTrailers({ [USAGE]: report });
    response.end();
  };
}

/** The response to a private chat. */
export interface PrivateResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly trailers: Readonly<Record<string, string>>;
  /** The decrypted body as far as it was received. An unencrypted body is unchanged. */
  readonly text: string;
  /** Whether the response ended normally. */
  readonly isComplete: boolean;
}

export interface PrivateRequest {
  readonly url: string;
  readonly publicKey: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
  readonly signal?: AbortSignal;
}

/** Sends a private chat as the local proxy does, and decrypts the response. */
export async function sendPrivateRequest({
  url,
  publicKey,
  headers,
  body,
  signal,
}: PrivateRequest): Promise<PrivateResponse> {
  const sealed = await sealRequest(publicKey, Buffer.from(JSON.stringify(body)));
  const response = await request(url, {
    method: 'POST',
    headers: { accept: 'text/event-stream', 'ehbp-encapsulated-key': sealed.encapsulatedKey, ...headers },
    body: Readable.from(sealed.frames),
    ...(signal ? { signal } : {}),
  });
  const nonce = response.headers['ehbp-response-nonce'];
  const chunks: Uint8Array[] = [];
  const plaintext = typeof nonce === 'string' ? sealed.openResponse(nonce).open(response.body) : response.body;
  let isComplete = true;
  try {
    for await (const chunk of plaintext) chunks.push(chunk);
  } catch {
    isComplete = false; // interrupted
  }
  const { statusCode: status } = response;
  const trailers = response.trailers as Record<string, string>;
  return { status, headers: response.headers, trailers, text: Buffer.concat(chunks).toString(), isComplete };
}
