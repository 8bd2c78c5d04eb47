/**
 * Simulated enclaves, each with one model. Each decrypts requests that are encrypted to its key, and encrypts its
 * responses ([EHBP](https://github.com/tinfoilsh/encrypted-http-body-protocol)). The protocol is Tinfoil's, except for
 * the attestation, whose format is `simulated`.
 */
import {
  EhbpError,
  ENCAPSULATED_KEY_HEADER,
  encodeKeyConfig,
  generateKeys,
  KEY_CONFIG_PROBLEM,
  KEY_CONFIG_TYPE,
  openRequest,
} from '#ehbp';
import type { SandboxBill } from '../bill.ts';
import { readChatRequest } from '../openai/chat-request.ts';
import { createCompletion } from '../openai/completion.ts';
import { assertKey, createFaultError, invalidRequestError } from '../openai/errors.ts';
import { createIdentityHeaders, getRequestId } from '../openai/identity.ts';
import type { OpenAiProvider } from '../openai/models.ts';
import { toEvents } from '../openai/stream.ts';
import { createHandler } from '../provider/serve.ts';
import { type Call, HttpError, parseObject, type Routes } from '../router.ts';
import { createEncryptedWriter, type ReplayBuffer, sendEncryptedError } from './encrypted-response.ts';

const UNREADABLE = 'failed to decrypt request';

/** @param provider has exactly one model: that of this enclave */
export function enclaveRoutes(provider: OpenAiProvider, bill: SandboxBill): Routes {
  const [model = ''] = provider.models.keys();
  const enclave = new Enclave(provider, model, bill);
  const at = `/enclaves/${model}`;
  return {
    [`POST ${at}/v1/chat/completions`]: (call: Call) => enclave.chat(call),
    [`GET ${at}/attestation`]: (call: Call) => enclave.attest(call),
    [`GET ${at}/.well-known/hpke-keys`]: (call: Call) => enclave.sendKeyConfig(call),
    [`GET ${at}/health`]: (call: Call) => call.sendJson(200, { status: 'ok' }),
    [`POST ${at}/rotate`]: (call: Call) => enclave.rotate(call),
    [`POST ${at}/misattest`]: (call: Call) => enclave.misattest(call),
  } as Routes;
}

class Enclave {
  private readonly provider: OpenAiProvider;
  private readonly model: string;
  private readonly handleChat: ReturnType<typeof createChatHandler>;
  /** The actual keys. */
  private keys = generateKeys();
  /** The keys that the enclave attests to. */
  private attestedKeys = this.keys;
  private readonly replayBuffer: ReplayBuffer = { last: undefined };

  constructor(provider: OpenAiProvider, model: string, bill: SandboxBill) {
    this.provider = provider;
    this.model = model;
    this.handleChat = createChatHandler(provider, bill);
  }

  async chat(call: Call): Promise<void> {
    assertKey(call);
    const { text, sealer } = await this.decryptRequest(call);
    const { replayBuffer } = this;
    try {
      const request = this.parseRequest(text);
      const isUsageRequested = call.request.headers['x-tinfoil-request-usage-metrics'] === 'true';
      const writer = createEncryptedWriter({ sealer, replayBuffer, isUsageRequested, prompt: request.lastUserText });
      await this.handleChat(call, request, writer);
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      sendEncryptedError(call, sealer, error);
    }
  }

  /** Sends a bundle in Tinfoil's format. The fields with evidence about processor and code are empty or null. */
  async attest(call: Call): Promise<void> {
    const { publicKey } = await this.attestedKeys;
    const body = { hpke_public_key: Buffer.from(publicKey).toString('hex'), model: this.model };
    call.sendJson(200, {
      domain: call.request.headers.host,
      enclaveAttestationReport: {
        format: 'simulated',
        body: Buffer.from(JSON.stringify(body)).toString('base64'),
      },
      digest: '',
      sigstoreBundle: null,
      vcek: '',
      enclaveCert: '',
    });
  }

  async sendKeyConfig(call: Call): Promise<void> {
    const { publicKey } = await this.attestedKeys;
    call.sendBytes(200, KEY_CONFIG_TYPE, Buffer.from(encodeKeyConfig(publicKey)));
  }

  /** Generates new keys and attests to them. */
  async rotate(call: Call): Promise<void> {
    this.keys = generateKeys();
    this.attestedKeys = this.keys;
    await this.attest(call);
  }

  /** Attests to keys that the enclave does not have. */
  async misattest(call: Call): Promise<void> {
    this.attestedKeys = generateKeys();
    await this.attest(call);
  }

  /** @throws HttpError in plaintext if the body cannot be decrypted, because there is no key for the response */
  private async decryptRequest(call: Call) {
    const encapsulatedKey = call.request.headers[ENCAPSULATED_KEY_HEADER];
    if (typeof encapsulatedKey !== 'string')
      throw invalidRequestError(400, 'The body must be encrypted to the key of this enclave.');
    const body = await call.readBody();
    const chunks: Uint8Array[] = [];
    try {
      const session = await openRequest(await this.keys, encapsulatedKey);
      for await (const chunk of session.open([body])) chunks.push(chunk);
      return { text: Buffer.concat(chunks).toString(), sealer: await session.sealResponse() };
    } catch (error) {
      if (!(error instanceof EhbpError)) throw error;
      if (error.code !== 'unauthentic' || chunks.length > 0) throw new HttpError(400, UNREADABLE);
      const problem = { type: KEY_CONFIG_PROBLEM, title: UNREADABLE };
      throw new HttpError(422, problem, { 'content-type': 'application/problem+json' });
    }
  }

  /** @throws HttpError */
  private parseRequest(text: string) {
    const requestedModel = parseObject(text)?.model;
    if (typeof requestedModel === 'string' && requestedModel !== '' && requestedModel !== this.model) {
      throw invalidRequestError(400, `The model \`${requestedModel}\` does not exist.`, 'model', 'model_not_found');
    }
    const request = readChatRequest(text, this.provider);
    // The gateway cannot see how many choices are generated, nor stop a non-streaming response.
    if (!request.stream && request.n > 1) throw invalidRequestError(400, 'n must be 1 without stream.', 'n');
    return request;
  }
}

function createChatHandler(provider: OpenAiProvider, bill: SandboxBill) {
  return createHandler(provider.name, bill, {
    createFaultError,
    createDirectiveError: (message) => invalidRequestError(400, message, 'messages', 'sandbox_directive'),
    getId: getRequestId,
    getHeaders: createIdentityHeaders,
    toResponseBody: createCompletion,
    toEvents,
  });
}
