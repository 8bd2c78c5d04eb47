/**
 * The model server to which the Go enclave forwards decrypted requests. It echoes the last message, streaming or not,
 * and reports the usage in the header or trailer that the gateway reads. It also serves the attestation bundle of the
 * enclave.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** A token per four bytes of the proof's texts. The gateway replaces far lower usage with an estimate. */
export const USAGE = { prompt: 22_501, completion: 22_502 };

const REPORT = `prompt=${USAGE.prompt},completion=${USAGE.completion},total=${USAGE.prompt + USAGE.completion}`;
const HEADER = 'X-Tinfoil-Usage-Metrics';

interface ReceivedChat {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages?: readonly { readonly content: string }[];
}

/**
 * @param key the public key of the enclave that forwards requests here, 64 hexadecimal digits
 * @param receivedBodies gets the body of each chat
 */
export function createProviderHandler(key: string, receivedBodies: string[]) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.url?.endsWith('/attestation')) {
      const body = Buffer.from(JSON.stringify({ hpke_public_key: key, model: 'gpt-oss-120b' })).toString('base64');
      const bundle = { domain: 'localhost', enclaveAttestationReport: { format: 'simulated', body } };
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(bundle));
    }
    const bodyChunks: Buffer[] = [];
    for await (const bodyChunk of request) bodyChunks.push(bodyChunk as Buffer);
    const text = Buffer.concat(bodyChunks).toString();
    receivedBodies.push(text);
    const { model, stream, messages } = JSON.parse(text) as ReceivedChat;
    const content = `Echo: ${messages?.at(-1)?.content}`;
    const common = { id: 'chatcmpl-1', created: 1, model };
    const usage = {
      prompt_tokens: USAGE.prompt,
      completion_tokens: USAGE.completion,
      total_tokens: USAGE.prompt + USAGE.completion,
    };
    if (!stream) {
      const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
      const headers = { 'content-type': 'application/json', [HEADER]: REPORT };
      const completion = JSON.stringify({ ...common, object: 'chat.completion', choices, usage });
      return void response.writeHead(200, headers).end(completion);
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', trailer: HEADER });
    const chunk = (delta: object, reason: string | null) =>
      `data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
    response.write(chunk({ role: 'assistant', content: '' }, null));
    for (const segment of content.match(/.{1,500}/gs) ?? []) response.write(chunk({ content: segment }, null));
    response.write(chunk({}, 'stop'));
    response.write(`data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', choices: [], usage })}\n\n`);
    response.write('data: [DONE]\n\n');
    response.addTrailers({ [HEADER]: REPORT });
    response.end();
  };
}
