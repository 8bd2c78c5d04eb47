/**
 * Simulated enclaves, each with one model: they read what is encrypted to their key, and encrypt what they answer (EHBP). They speak as
 * Tinfoil's do, but for their attestation, which says that they are simulated.
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
import { completion } from '../openai/completion.ts';
import { assertKey, refusal, refusalAsTold } from '../openai/errors.ts';
import { identityHeaders, requestId } from '../openai/identity.ts';
import type { OpenAiProvider } from '../openai/models.ts';
import { eventsOf } from '../openai/stream.ts';
import { serve } from '../provider/serve.ts';
import { type Call, parseObject, Refusal, type Routes } from '../router.ts';
import { type Replayed, refuseSealed, sealedOutlet } from './encrypted-response.ts';

const UNREADABLE = 'failed to decrypt request';

/** @param provider has the one model of this enclave */
export function enclaveRoutes(provider: OpenAiProvider, bill: SandboxBill): Routes {
  const [model = ''] = provider.models.keys();
  const enclave = new Enclave(provider, model, bill);
  const at = `/enclaves/${model}`;
  return {
    [`POST ${at}/v1/chat/completions`]: (call: Call) => enclave.chat(call),
    [`GET ${at}/attestation`]: (call: Call) => enclave.attest(call),
    [`GET ${at}/.well-known/hpke-keys`]: (call: Call) => enclave.tellKey(call),
    [`GET ${at}/health`]: (call: Call) => call.json(200, { status: 'ok' }),
    [`POST ${at}/rotate`]: (call: Call) => enclave.rotate(call),
    [`POST ${at}/misattest`]: (call: Call) => enclave.misattest(call),
  } as Routes;
}

class Enclave {
  private readonly provider: OpenAiProvider;
  private readonly model: string;
  private readonly answer: ReturnType<typeof answering>;
  /** The key that it has, and the one that it says it has. */
  private keys = generateKeys();
  private attested = this.keys;
  private readonly replayed: Replayed = { last: undefined };

  constructor(provider: OpenAiProvider, model: string, bill: SandboxBill) {
    this.provider = provider;
    this.model = model;
    this.answer = answering(provider, bill);
  }

  async chat(call: Call): Promise<void> {
    assertKey(call);
    const { text, sealer } = await this.opened(call);
    const { replayed } = this;
    try {
      const question = this.understood(text);
      const wantsUsage = call.request.headers['x-tinfoil-request-usage-metrics'] === 'true';
      const outlet = sealedOutlet({ sealer, replayed, wantsUsage, prompt: question.lastUserText });
      await this.answer(call, question, outlet);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuseSealed(call, sealer, error);
    }
  }

  /** In the shape of Tinfoil's bundle, which has the report of the processor and what it is compared with. */
  async attest(call: Call): Promise<void> {
    const { publicKey } = await this.attested;
    const body = { hpke_public_key: Buffer.from(publicKey).toString('hex'), model: this.model };
    call.json(200, {
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

  async tellKey(call: Call): Promise<void> {
    const { publicKey } = await this.attested;
    call.bytes(200, KEY_CONFIG_TYPE, Buffer.from(encodeKeyConfig(publicKey)));
  }

  /** From now on it has a new key, and says so. */
  async rotate(call: Call): Promise<void> {
    this.keys = generateKeys();
    this.attested = this.keys;
    await this.attest(call);
  }

  /** From now on it says that it has a key which it does not have. */
  async misattest(call: Call): Promise<void> {
    this.attested = generateKeys();
    await this.attest(call);
  }

  /** @throws Refusal in plaintext: there is no key for an answer */
  private async opened(call: Call) {
    const encapsulatedKey = call.request.headers[ENCAPSULATED_KEY_HEADER];
    if (typeof encapsulatedKey !== 'string')
      throw refusal(400, 'The body must be encrypted to the key of this enclave.');
    const body = await call.body();
    const pieces: Uint8Array[] = [];
    try {
      const opened = await openRequest(await this.keys, encapsulatedKey);
      for await (const piece of opened.open([body])) pieces.push(piece);
      return { text: Buffer.concat(pieces).toString(), sealer: await opened.sealResponse() };
    } catch (error) {
      if (!(error instanceof EhbpError)) throw error;
      if (error.code !== 'unauthentic' || pieces.length > 0) throw new Refusal(400, UNREADABLE);
      const problem = { type: KEY_CONFIG_PROBLEM, title: UNREADABLE };
      throw new Refusal(422, problem, { 'content-type': 'application/problem+json' });
    }
  }

  /** @throws Refusal */
  private understood(text: string) {
    const asked = parseObject(text)?.model;
    if (typeof asked === 'string' && asked !== '' && asked !== this.model) {
      throw refusal(400, `The model \`${asked}\` does not exist.`, 'model', 'model_not_found');
    }
    const question = readChatRequest(text, this.provider);
    // Nobody outside sees how many answers are made, nor can stop those that come in one piece.
    if (!question.stream && question.n > 1) throw refusal(400, 'n must be 1 without stream.', 'n');
    // Servers of open weights do not pad their events.
    return { ...question, obfuscate: false };
  }
}

function answering(provider: OpenAiProvider, bill: SandboxBill) {
  return serve(provider.name, bill, {
    refusalAsTold,
    misunderstood: (message) => refusal(400, message, 'messages', 'sandbox_directive'),
    idOf: requestId,
    headersOf: identityHeaders,
    wholeOf: completion,
    eventsOf,
  });
}
