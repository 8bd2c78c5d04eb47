/** One chat with an enclave: attest, encrypt, send, decrypt. */

import { EhbpError, KEY_CONFIG_PROBLEM, type SealedRequest, sealRequest } from '#ehbp';
import { isJsonObject } from '#kernel';
import type { VerifiedEnclave } from './attestation/attestation-verifier.ts';
import type { Enclaves } from './enclaves.ts';
import { type GatewayClient, type GatewayResponse, parseJson, readBody, toProxyError } from './gateway-client.ts';
import { INCOMPLETE_RESPONSE, ProxyError, parseErrorBody } from './proxy-error.ts';

const ENCLAVE_ERROR = 'enclave_error';
const MAX_ERROR_BYTES = 256 * 1024;

/** What an enclave answers, and nobody between could have written. */
export interface EnclaveResponse {
  readonly requestId: string | undefined;
  /** The plaintext, frame by frame. Its end proves nothing: who reads it must know what it ends with. */
  readonly plaintext: AsyncIterable<Uint8Array>;
}

export class PrivateChats {
  constructor(
    private readonly gateway: GatewayClient,
    private readonly enclaves: Enclaves,
  ) {}

  /**
   * Nothing of the request leaves this process but what is encrypted to a key that was attested.
   * @param model without the prefix
   * @param request the chat, as JSON
   * @throws ProxyError when there is no answer
   */
  async send(model: string, request: Uint8Array, signal: AbortSignal): Promise<EnclaveResponse> {
    const firstEnclave = await this.enclaves.getEnclave(model);
    const response = await this.sendOnce(model, firstEnclave, request, signal);
    if (response !== 'key_changed') return response;
    const retryResponse = await this.sendOnce(
      model,
      await this.enclaves.getEnclave(model, firstEnclave),
      request,
      signal,
    );
    if (retryResponse !== 'key_changed') return retryResponse;
    throw new ProxyError(502, 'The enclave does not have the key that it has shown', { code: 'key_changed' });
  }

  /**
   * Why there is no answer: where one broke off because there was no more money, only the gateway's history says so.
   * @param requestId the gateway's, of an answer that had begun
   */
  async explainError(error: unknown, requestId: string | undefined, signal: AbortSignal): Promise<unknown> {
    if (
      !(error instanceof ProxyError) ||
      error.code !== INCOMPLETE_RESPONSE ||
      requestId === undefined ||
      signal.aborted
    )
      return error;
    if ((await this.gateway.findErrorCode(requestId, signal)) !== 'hold_used_up') return error;
    return new ProxyError(402, 'The balance was used up: the answer is cut off here', {
      code: 'insufficient_balance',
      isFinal: true,
    });
  }

  private async sendOnce(
    model: string,
    { publicKey }: VerifiedEnclave,
    request: Uint8Array,
    signal: AbortSignal,
  ): Promise<EnclaveResponse | 'key_changed'> {
    signal.throwIfAborted();
    const sealed = await encryptRequest(publicKey, request);
    const reply = await this.gateway.sendChat(model, sealed, signal);
    const { status, nonce, requestId } = reply;
    if (nonce === undefined) {
      if (status === 422 && (await confirmKeyProblem(reply))) return 'key_changed';
      throw await toProxyError(reply, true);
    }
    const plaintext = decrypt(() => sealed.openResponse(nonce).open(reply.body), signal);
    if (status >= 200 && status < 300) return { requestId, plaintext };
    throw await toEnclaveError(reply, plaintext);
  }
}

async function encryptRequest(publicKey: Uint8Array, request: Uint8Array): Promise<SealedRequest> {
  try {
    return await sealRequest(publicKey, request);
  } catch {
    throw new ProxyError(502, 'Nothing was sent: the key of the enclave is of no use', {
      code: 'not_attested',
      isFinal: true,
    });
  }
}

async function confirmKeyProblem(reply: GatewayResponse): Promise<boolean> {
  const problem = parseJson(await reply.readBody().catch(() => Buffer.alloc(0)));
  if (isJsonObject(problem) && problem.type === KEY_CONFIG_PROBLEM) return true;
  throw new ProxyError(422, `The gateway says: ${parseErrorBody(problem)?.message ?? 'status 422'}`, {
    code: 'gateway_error',
  });
}

/** The enclave's own error, which was encrypted: about the request, by its only reader. */
async function toEnclaveError(
  { status, requestId }: GatewayResponse,
  plaintext: AsyncIterable<Uint8Array>,
): Promise<ProxyError> {
  const errorDetails = parseErrorBody(parseJson(await readBody(plaintext, MAX_ERROR_BYTES)));
  const isError = status >= 400 && status <= 599;
  return new ProxyError(isError ? status : 502, errorDetails?.message ?? `The enclave answered with status ${status}`, {
    code: errorDetails?.code ?? ENCLAVE_ERROR,
    logCode: ENCLAVE_ERROR,
    ...(errorDetails?.type ? { type: errorDetails.type } : {}),
    ...(requestId ? { requestId } : {}),
  });
}

/** Decrypts while it comes; whatever goes wrong on the way is an answer that broke off. */
async function* decrypt(open: () => AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* open();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const problem = error instanceof EhbpError ? 'cannot be decrypted' : 'broke off';
    throw new ProxyError(502, `The answer ${problem}`, { code: INCOMPLETE_RESPONSE, isFinal: true });
  }
}
