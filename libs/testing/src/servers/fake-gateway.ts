/**
 * A gateway with private models and their enclave, for tests of clients that must verify what they receive. Tests set
 * the responses.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type EnclaveKeys, generateKeys, type OpenedRequest, openRequest, RESPONSE_NONCE_HEADER } from '#ehbp';

/** A received request, as ciphertext and as the enclave decrypted it. */
export interface SealedCall {
  readonly headers: IncomingMessage['headers'];
  readonly ciphertext: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every schema
  readonly chat: any;
}

export type SealedReply = (
  reply: { readonly response: ServerResponse; readonly request: OpenedRequest },
  call: SealedCall,
) => void | Promise<void>;

export class FakeGateway {
  /** Chat requests that the enclave could decrypt. */
  readonly calls: SealedCall[] = [];
  /** All requests, such as `GET /path`. */
  readonly requestLines: string[] = [];
  models: readonly string[] = ['private/one'];
  /** The keys of the enclave. */
  keys!: EnclaveKeys;
  /** The keys in its bundle. A test can set others. */
  presentedKeys!: EnclaveKeys;
  bundle: () => object = () => createSimulatedBundle(this.presentedKeys.publicKey);
  /** Responds to a chat that could be decrypted. */
  reply: SealedReply = createEncryptedReply(createChatEvents('Hello'));
  /** If set, responds to a chat before its body is read. */
  reject: ((response: ServerResponse) => void) | undefined;
  private readonly server = createServer((request, response) => void this.serve(request, response));

  static async listen(): Promise<FakeGateway> {
    const gateway = new FakeGateway();
    gateway.keys = await generateKeys();
    gateway.presentedKeys = gateway.keys;
    gateway.server.listen(0, '127.0.0.1');
    await once(gateway.server, 'listening');
    return gateway;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '' } = request;
    this.requestLines.push(`${method} ${url}`);
    if (method === 'GET' && url.startsWith('/v1/models')) {
      const data = ['openai/gpt-5-mini', ...this.models].map((id) => ({ id, object: 'model', created: 7, name: id }));
      return createPlaintextReply(200, { object: 'list', data })(response);
    }
    if (method === 'GET') return createPlaintextReply(200, this.bundle())(response);
    if (this.reject) return this.reject(response);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    await this.chat(request.headers, Buffer.concat(chunks), response);
  }

  private async chat(headers: IncomingMessage['headers'], ciphertext: Buffer, response: ServerResponse): Promise<void> {
    const openedRequest = await openRequest(this.keys, String(headers['ehbp-encapsulated-key']));
    let text = '';
    try {
      for await (const chunk of openedRequest.open(toAsyncIterable(ciphertext))) text += Buffer.from(chunk).toString();
    } catch {
      return sendKeyProblem(response); // encrypted with another key
    }
    const call = { headers, ciphertext, chat: JSON.parse(text) };
    this.calls.push(call);
    await this.reply({ response, request: openedRequest }, call);
  }
}

/** Creates a function that sends an unencrypted response. */
export function createPlaintextReply(status: number, body: object | string, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  };
}

/** Returns the SSE events of a streamed completion with this content. */
export function createChatEvents(content: string): readonly string[] {
  const chunks = [
    { choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }], usage: null },
    { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: null },
    { choices: [], usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 } },
  ];
  const data = chunks.map((chunk) => JSON.stringify({ id: 'chat-1', object: 'chat.completion.chunk', ...chunk }));
  return [...data, '[DONE]'].map((payload) => `data: ${payload}\n\n`);
}

/** Creates a function that sends an encrypted response with one frame per text. */
export function createEncryptedReply(
  texts: readonly string[],
  status = 200,
  end: (response: ServerResponse) => unknown = (response) => response.end(),
) {
  return async ({ response, request }: Parameters<SealedReply>[0]) => {
    const sealer = await request.sealResponse();
    response.writeHead(status, { [RESPONSE_NONCE_HEADER]: sealer.nonce });
    for (const text of texts) response.write(sealer.seal(Buffer.from(text)));
    end(response);
  };
}

export const sendKeyProblem = createPlaintextReply(
  422,
  { type: 'urn:ietf:params:ehbp:error:key-config', title: 'another key' },
  { 'content-type': 'application/problem+json' },
);

export function createSimulatedBundle(publicKey: Uint8Array): object {
  const body = JSON.stringify({ hpke_public_key: Buffer.from(publicKey).toString('hex'), model: 'one' });
  const enclaveAttestationReport = { format: 'simulated', body: Buffer.from(body).toString('base64') };
  return { domain: 'enclave.test', enclaveAttestationReport };
}

async function* toAsyncIterable(ciphertext: Buffer): AsyncGenerator<Uint8Array> {
  yield ciphertext;
}
