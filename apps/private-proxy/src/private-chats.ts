/** Sends one chat to an enclave: attest, encrypt, send, decrypt. */

import { EhbpError, KEY_CONFIG_PROBLEM, type SealedRequest, sealRequest } from '#ehbp';
import { isJsonObject } from '#kernel';
import type { VerifiedEnclave } from './attestation/attestation-verifier.ts';
import type { Enclaves } from './enclaves.ts';
import { type GatewayClient, type GatewayResponse, parseJson, readBody, toProxyError } from './gateway-client.ts';
import { INCOMPLETE_RESPONSE, ProxyError, parseErrorBody } from './proxy-error.ts';

const ENCLAVE_ERROR = 'enclave_error';
const MAX_ERROR_BYTES = 256 * 1024;

/** A response that was encrypted by the enclave, so the gateway cannot have written it. */
export interface EnclaveResponse {
  readonly requestId: string | undefined;
  /**
   * The decrypted content. A response that ends between two frames ends like a complete one, so the reader must check
   * that the content is complete.
   */
  readonly plaintext: AsyncIterable<Uint8Array>;
}

export class PrivateChats {
  constructor(
    private readonly gateway: GatewayClient,
    private readonly enclaves: Enclaves,
  ) {}

  /**
   * Sends a chat. Its content leaves this process only encrypted for an attested key. If the enclave has another key by
   * now, that key is attested and the chat is sent once more.
   * @param model without the prefix
   * @param request the chat as JSON
   * @throws ProxyError if there is no successful response
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
    throw new ProxyError(502, 'The enclave does not have the key that it attested', { code: 'key_changed' });
  }

  /**
   * Returns the error to report. If a response was interrupted because the money was used up, only the gateway's
   * history shows this.
   * @param requestId the gateway's id of the request, if a response had started
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
    return new ProxyError(402, 'The balance or the limit of the API key is used up; the response is incomplete', {
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
    throw new ProxyError(502, 'Nothing was sent: the key of the enclave is invalid', {
      code: 'not_attested',
      isFinal: true,
    });
  }
}

async function confirmKeyProblem(reply: GatewayResponse): Promise<boolean> {
  // an interrupted body is no key problem
  const problem = parseJson(await reply.readBody().catch(() => Buffer.alloc(0)));
  if (isJsonObject(problem) && problem.type === KEY_CONFIG_PROBLEM) return true;
  throw new ProxyError(422, `The gateway says: ${parseErrorBody(problem)?.message ?? 'status 422'}`, {
    code: 'gateway_error',
  });
}

/** Converts an error that the enclave encrypted. Its code may quote the request, so the log gets `ENCLAVE_ERROR`. */
async function toEnclaveError(
  { status, requestId }: GatewayResponse,
  plaintext: AsyncIterable<Uint8Array>,
): Promise<ProxyError> {
  const errorDetails = parseErrorBody(parseJson(await readBody(plaintext, MAX_ERROR_BYTES)));
  const isError = status >= 400 && status <= 599;
  return new ProxyError(isError ? status : 502, errorDetails?.message ?? `The enclave returned status ${status}`, {
    code: errorDetails?.code ?? ENCLAVE_ERROR,
    logCode: ENCLAVE_ERROR,
    ...(errorDetails?.type ? { type: errorDetails.type } : {}),
    ...(requestId ? { requestId } : {}),
  });
}

/** Decrypts a body while it arrives. @throws ProxyError for any failure: the response is then incomplete */
async function* decrypt(open: () => AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* open();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const problem = error instanceof EhbpError ? 'cannot be decrypted' : 'was interrupted';
    throw new ProxyError(502, `The response ${problem}`, { code: INCOMPLETE_RESPONSE, isFinal: true });
  }
}
