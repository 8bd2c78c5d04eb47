/** Data providers. The entries of the catalogue specify their paths and parameters. */
import { type DataCall, type DataResponse, type JsonDataResponse, type Provider, UpstreamError } from '#application';
import { parseNonEmptyText, parseProviderRequestId } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import type { ProviderHttpResponse, ResponseHeaders } from '../../http/provider-request.ts';
import type { CredentialRedactor } from '../../http/redaction.ts';
import { type BillFormat, parseReportedBill } from '../../http/reported-bill.ts';
import type { CredentialLocation, ProviderClient, ProviderConfig } from '../provider.ts';
import { toDataError } from './error-message.ts';

/** Limit of JSON responses, which are parsed and may be stored. A hundred pages of text are smaller. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;
/** Media types that a browser does not display as a page of the gateway's origin. */
const FILE_MEDIA_TYPES = /^(image\/(?!svg)[\w.+-]+|video\/[\w.+-]+|application\/octet-stream)\s*(;|$)/i;
const BEARER_CREDENTIAL: CredentialLocation = { in: 'header', name: 'authorization', prefix: 'Bearer ' };

export function createDataProvider(
  client: ProviderClient,
  { credential = BEARER_CREDENTIAL, keyCheck, bill }: ProviderConfig,
) {
  const { http } = client;
  const { query, headers } = toCredentialFields(client, credential);
  const path = keyCheck === undefined ? undefined : addQuery(keyCheck, query);
  return {
    data: createDataLookup(client, credential, bill),
    checkKey: http.createKeyCheck(path, { headers, mapErrorResponse: toDataError }),
    close: () => http.close(),
  } satisfies Provider;
}

/** Creates the data lookup of any provider. The second parameter specifies where the credential is sent. */
export function createDataLookup(
  client: ProviderClient,
  location: CredentialLocation,
  billFormat: BillFormat = {},
): NonNullable<Provider['data']> {
  const secret = toCredentialFields(client, location);
  const isSecret = (parameter: string) => secret.query.some(([name]) => name.toLowerCase() === parameter.toLowerCase());
  return (call) => {
    // A second parameter with this name might be used instead of the operator's credential.
    const query = [...call.query.filter(([parameter]) => !isSecret(parameter)), ...secret.query];
    const request = { ...call, query, headers: { ...call.headers, ...secret.headers } };
    return runLookup(client.http, request, billFormat);
  };
}

/** Returns the query parameter or the header with the credential. */
function toCredentialFields(
  { credential }: ProviderClient,
  { in: location, name, prefix = '' }: CredentialLocation,
): Pick<DataCall, 'query' | 'headers'> {
  if (credential === undefined) return { query: [], headers: {} };
  const secret = prefix + credential;
  return location === 'query' ? { query: [[name, secret]], headers: {} } : { query: [], headers: { [name]: secret } };
}

function addQuery(path: string, query: DataCall['query']): string {
  const search = new URLSearchParams(query as [string, string][]).toString();
  return search === '' ? path : `${path}?${search}`;
}

async function runLookup(http: ProviderHttp, call: DataCall, billFormat: BillFormat): Promise<DataResponse> {
  const { method, path, query, body, headers, isBilledAfterDisconnect, signal } = call;
  const response = await http.request(addQuery(path, query), {
    method,
    headers,
    ...(body === undefined ? {} : { body: { ...body } }),
    signal,
    invoiced: true,
    ...(isBilledAfterDisconnect ? { isBilledAfterDisconnect } : {}),
    mapErrorResponse: toDataError,
  });
  if (call.isFile) return toFileDataResponse(response, http.redactor);
  const lookup = await toJsonDataResponse(response, http.redactor);
  return { ...lookup, reportedBill: parseReportedBill(lookup.value, billFormat) };
}

async function toFileDataResponse(
  response: ProviderHttpResponse,
  redaction: CredentialRedactor,
): Promise<DataResponse> {
  const { status, headers } = response;
  const mediaType = String(headers['content-type'] ?? '').trim();
  const providerRequestId = getRequestId(headers, redaction);
  if (FILE_MEDIA_TYPES.test(mediaType))
    return {
      kind: 'file',
      status,
      mediaType,
      bytes: redaction.redactChunks(response.chunks()),
      vendorId: providerRequestId,
    };
  await response.bytes(0).catch(() => {}); // closes the connection
  throw toUnusableResponseError('The provider sent something other than a supported file', status, providerRequestId);
}

async function toJsonDataResponse(
  response: ProviderHttpResponse,
  redaction: CredentialRedactor,
): Promise<JsonDataResponse> {
  const { status, headers } = response;
  const providerRequestId = getRequestId(headers, redaction);
  const received = await response.bytes(MAX_RESPONSE_BYTES).catch((failure: UpstreamError) => {
    throw failure.withDetails({ deliveredText: '', vendorId: providerRequestId });
  });
  try {
    const bytes = redaction.redactJson(received);
    const value: unknown = JSON.parse(bytes.toString());
    return { kind: 'data', status, bytes, value, vendorId: providerRequestId ?? findRequestId(value) };
  } catch {
    throw toUnusableResponseError('The provider sent a response that is not JSON', status, providerRequestId);
  }
}

/** `deliveredText` is set, because the provider has responded and may invoice the request. */
function toUnusableResponseError(
  message: string,
  status: number,
  providerRequestId: string | undefined,
): UpstreamError {
  return new UpstreamError('upstream_error', message, { status, deliveredText: '', vendorId: providerRequestId });
}

function getRequestId(headers: ResponseHeaders, redaction: CredentialRedactor): string | undefined {
  const id = parseProviderRequestId({ id: headers['x-request-id'] ?? headers['request-id'] });
  return id === undefined ? undefined : redaction.redactText(id);
}

function findRequestId(value: unknown): string | undefined {
  const { requestId, request_id } = (value ?? {}) as { readonly requestId?: unknown; readonly request_id?: unknown };
  return parseProviderRequestId({ id: parseNonEmptyText(requestId) ?? parseNonEmptyText(request_id) });
}
