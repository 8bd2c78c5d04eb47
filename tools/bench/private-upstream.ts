/**
 * An enclave for benchmarks, which responds immediately with the requested output. Responses to encrypted requests are
 * encrypted; others are not. It also replaces the gateway when the proxy is measured alone.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ENCAPSULATED_KEY_HEADER, generateKeys, openRequest, RESPONSE_NONCE_HEADER } from '#ehbp';

const MODEL = 'gpt-oss-120b';
const USAGE = 'X-Tinfoil-Usage-Metrics';
const REQUESTED_OUTPUT = /events=(\d+) bytes=(\d+)/;
/** The reported completion has one token per four bytes of text. */
const BYTES_OF_TOKEN = 4;
const ABOUT = { id: 'chatcmpl-1', created: 1, model: MODEL };

const keys = await generateKeys();

async function handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '/', headers } = request;
  if (method === 'GET' && url.includes('/attestation')) return respondWithJson(response, createBundle());
  if (method === 'GET')
    return respondWithJson(response, { data: [{ id: `private/${MODEL}`, name: MODEL, created: 1 }] });
  const encapsulated = headers[ENCAPSULATED_KEY_HEADER];
  const decryptor = typeof encapsulated === 'string' ? await openRequest(keys, encapsulated) : undefined;
  const bodyChunks: Uint8Array[] = [];
  for await (const bodyChunk of decryptor ? decryptor.open(request) : request) bodyChunks.push(bodyChunk as Uint8Array);
  const { stream = false, messages } = JSON.parse(Buffer.concat(bodyChunks).toString()) as {
    readonly stream?: boolean;
    readonly messages: readonly { readonly content: string }[];
  };
  const [, events = '1', bytes = '64'] = REQUESTED_OUTPUT.exec(messages.at(-1)?.content ?? '') ?? [];
  const sealer = await decryptor?.sealResponse();
  const seal = (text: Buffer): Uint8Array => (sealer ? sealer.seal(text) : text);
  const text = 'e'.repeat(Number(bytes));
  const [prompt, completion] = [100, Math.ceil((Number(events) * Number(bytes)) / BYTES_OF_TOKEN)];
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  const report = { [USAGE]: `prompt=${prompt},completion=${completion},total=${prompt + completion}` };
  const nonce = sealer ? { [RESPONSE_NONCE_HEADER]: sealer.nonce } : {};
  if (!stream) {
    const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }];
    const responseBody = Buffer.from(JSON.stringify({ ...ABOUT, object: 'chat.completion', choices, usage }));
    return void response
      .writeHead(200, { 'content-type': 'application/json', ...report, ...nonce })
      .end(seal(responseBody));
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', trailer: USAGE, ...nonce });
  const event = createChunk({ content: text }, null);
  for (let i = 0; i < Number(events) && !response.destroyed; i++)
    if (!response.write(seal(event))) await waitForDrain(response);
  for (const last of [
    createChunk({}, 'stop'),
    formatSse({ ...ABOUT, choices: [], usage }),
    Buffer.from('data: [DONE]\n\n'),
  ])
    response.write(seal(last));
  response.addTrailers(report);
  response.end();
}

function createChunk(delta: object, reason: string | null): Buffer {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  return formatSse({ ...ABOUT, object: 'chat.completion.chunk', choices });
}

function formatSse(event: object): Buffer {
  return Buffer.from(`data: ${JSON.stringify(event)}\n\n`);
}

function waitForDrain(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.once('drain', done).once('close', done);
  });
}

function createBundle(): object {
  const body = JSON.stringify({ hpke_public_key: Buffer.from(keys.publicKey).toString('hex'), model: MODEL });
  return { domain: 'localhost', enclaveAttestationReport: { format: 'simulated', body: btoa(body) } };
}

function respondWithJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

const server = createServer((request, response) => {
  // A client may disconnect during a response.
  handleRequest(request, response).catch(() => response.destroy());
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
process.on('SIGTERM', () => process.exit(0));
