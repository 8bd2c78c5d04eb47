/**
 * Sends an encrypted chat. Text that an enclave sends outside an encrypted body may repeat the user's prompt. Such
 * text is forwarded only in one of a few fixed formats.
 */
import {
  type EncryptedChunk,
  EncryptedErrorResponse,
  type EncryptedResponse,
  type EncryptedResponseHead,
  type PrivateChatCall,
  UpstreamError,
} from '#application';
import type { Usage } from '#domain';
import {
  ENCAPSULATED_KEY_HEADER,
  FrameSizeReader,
  isHeaderValue,
  KEY_CONFIG_PROBLEM,
  RESPONSE_NONCE_HEADER,
  TAG_BYTES,
} from '#ehbp';
import { toUpstreamErrorFromStatus } from '../../http/json-http-client.ts';
import { parseTokenCount } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';
import { createCredentialHeader } from '../provider.ts';

const USAGE_HEADER = 'x-tinfoil-usage-metrics';
/** For example `prompt=67,completion=42,total=109`. */
const USAGE_TEXT = /^prompt=(\d{1,9}),completion=(\d{1,9})(,total=\d{1,10})?$/;
/**
 * For example `chatcmpl-` and hexadecimal digits. Ids are stored permanently, so the format leaves no space for text.
 */
const PROVIDER_REQUEST_ID = /^(req_|chatcmpl-)?[0-9a-f-]{8,64}$/;
const MESSAGE_REQUEST_REJECTED = 'The enclave rejected the request';

/** @throws EncryptedErrorResponse for an error response that the client gets; UpstreamError for any other failure */
export async function sendPrivateChat(
  http: ProviderHttp,
  credential: string | undefined,
  call: PrivateChatCall,
): Promise<EncryptedResponse> {
  const { enclave, encapsulatedKey, stream, body, signal } = call;
  let isSent = false;
  const streamBody = async function* () {
    yield* body;
    isSent = true;
  };
  const response = await http
    .request(`${enclave}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        ...createCredentialHeader('authorization', credential, 'Bearer '),
        'content-type': 'application/json',
        accept: stream ? 'text/event-stream' : 'application/json',
        [ENCAPSULATED_KEY_HEADER]: encapsulatedKey,
        'x-tinfoil-request-usage-metrics': 'true',
      },
      body: streamBody(),
      signal,
      mapErrorResponse,
    })
    .catch((error: unknown) => {
      throw error instanceof UpstreamError ? withDeliveryState(error, isSent) : error;
    });
  const { headers } = response;
  const nonce = getHeader(headers, RESPONSE_NONCE_HEADER);
  if (response.status !== 200 || nonce === undefined || !isHeaderValue(nonce)) {
    await response.bytes(0).catch(() => {}); // closes the connection
    throw new UpstreamError('upstream_error', 'The enclave did not encrypt its response', { deliveredText: '' });
  }
  const usageText = parseUsageText(getHeader(headers, USAGE_HEADER));
  const getTrailer = () => parseUsageText(getHeader(response.trailers(), USAGE_HEADER));
  return {
    head: { mediaType: getMediaType(headers), nonce, usageText },
    chunks: toEncryptedChunks(response.chunks()),
    usage: () => parseUsage(getTrailer() ?? usageText),
    getTrailer,
    vendorId: () => getHeader(headers, 'x-request-id')?.match(PROVIDER_REQUEST_ID)?.[0],
  };
}

/** @throws UpstreamError, also if the body ends within a frame; EhbpError for an invalid frame length */
async function* toEncryptedChunks(chunks: AsyncIterable<Uint8Array>): AsyncIterable<EncryptedChunk> {
  const sizes = new FrameSizeReader();
  for await (const bytes of chunks) {
    if (bytes.length === 0) continue;
    const frames = sizes.add(bytes).map((size) => Math.max(size - TAG_BYTES, 0));
    yield { bytes, frameSizes: frames, missingBytes: sizes.missingBytes };
  }
  if (!sizes.isAtFrameBoundary) throw new UpstreamError('upstream_error', 'The enclave ended its response early');
}

/**
 * Sets `deliveredText` of a failure without a response only if the complete request may have been sent. An enclave
 * cannot process and bill an incomplete request.
 */
function withDeliveryState(failure: UpstreamError, isSent: boolean): UpstreamError {
  if (failure.status !== undefined || failure.isUnsent) return failure;
  return failure.withDetails({ deliveredText: isSent ? '' : undefined, hasOpenCost: false });
}

function mapErrorResponse(status: number, headers: ResponseHeaders, text: string, body: Uint8Array): UpstreamError {
  const nonce = getHeader(headers, RESPONSE_NONCE_HEADER);
  const isError = status >= 400 && status <= 599;
  // The enclave's 404 does not concern a model of the catalogue.
  const failure =
    status === 404
      ? new UpstreamError('upstream_error', MESSAGE_REQUEST_REJECTED, { status })
      : toUpstreamErrorFromStatus(status, headers, { upstreamMessage: MESSAGE_REQUEST_REJECTED });
  if (failure.isCredentialRejected) return failure; // the client's request is not the reason
  if (isError && nonce !== undefined && isHeaderValue(nonce))
    return new EncryptedErrorResponse(failure, { status, mediaType: getMediaType(headers), nonce }, body);
  if (status !== 422 || !isKeyConfigProblem(text)) return failure;
  const problem = JSON.stringify({ type: KEY_CONFIG_PROBLEM, title: 'The enclave has another key' });
  return new EncryptedErrorResponse(
    failure,
    { status, mediaType: 'application/problem+json', nonce: undefined },
    Buffer.from(problem),
  );
}

function isKeyConfigProblem(text: string): boolean {
  try {
    return (JSON.parse(text) as { readonly type?: unknown } | null)?.type === KEY_CONFIG_PROBLEM;
  } catch {
    return false; // invalid JSON
  }
}

/** Reduces the content type to streamed or not, so that it carries no other information. */
function getMediaType(headers: ResponseHeaders): EncryptedResponseHead['mediaType'] {
  return /^text\/event-stream\b/i.test(getHeader(headers, 'content-type') ?? '')
    ? 'text/event-stream'
    : 'application/json';
}

/** Returns the usage report only if it has the expected format, so that it cannot carry other text. */
function parseUsageText(text: string | undefined): string | undefined {
  return text !== undefined && USAGE_TEXT.test(text) ? text : undefined;
}

function parseUsage(report: string | undefined): Usage | undefined {
  const [, prompt, completion] = USAGE_TEXT.exec(report ?? '') ?? [];
  const [input, output] = [parseTokenCount(Number(prompt)), parseTokenCount(Number(completion))];
  return input === undefined || output === undefined ? undefined : { input, output };
}

function getHeader(headers: ResponseHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
}
