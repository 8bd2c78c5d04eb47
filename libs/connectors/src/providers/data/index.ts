/** Vendors that sell data: what each is asked, and where, is said by the entries of the catalogue. */
import { type DataCall, type DataResponse, type Provider, UpstreamError } from '#application';
import { parseNonEmptyText, parseProviderRequestId } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import type { ProviderHttpResponse, ResponseHeaders } from '../../http/provider-request.ts';
import type { CredentialRedactor } from '../../http/redaction.ts';
import type { CredentialPlace, ProviderClient, ProviderConfig } from '../provider.ts';
import { complaint } from './error-message.ts';

/** Answers are parsed and may be kept: a hundred pages of text are less. */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;
/** What no browser takes for a page of ours. */
const FILES = /^(image\/(?!svg)[\w.+-]+|video\/[\w.+-]+|application\/octet-stream)\s*(;|$)/i;
const BEARER: CredentialPlace = { in: 'header', name: 'authorization', prefix: 'Bearer ' };

export function data(at: ProviderClient, { credential = BEARER }: ProviderConfig) {
  return { data: lookUps(at, credential), close: () => at.http.close() } satisfies Provider;
}

/** Lookups of a vendor, which may do other things as well. @param place where it wants its credential */
export function lookUps(
  { http, credential }: ProviderClient,
  { in: where, name, prefix = '' }: CredentialPlace,
): NonNullable<Provider['data']> {
  const secret = [name, prefix + credential] as const;
  return (call) => {
    // Of two, a vendor might take the other.
    const others = () => call.query.filter(([each]) => each.toLowerCase() !== name.toLowerCase());
    const query = where === 'query' ? [...others(), secret] : call.query;
    const headers = where === 'header' ? { ...call.headers, [name]: secret[1] } : call.headers;
    return lookedUp(http, { ...call, query, headers });
  };
}

async function lookedUp(http: ProviderHttp, call: DataCall): Promise<DataResponse> {
  const { method, path, query, body, headers, isBilledAfterDisconnect: billsOn, signal } = call;
  const search = new URLSearchParams(query as [string, string][]).toString();
  const answer = await http.request(search === '' ? path : `${path}?${search}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: { ...body } }),
    signal,
    invoiced: true,
    ...(billsOn ? { billsOn } : {}),
    refusalOf: complaint,
  });
  return call.isFile ? fileIn(answer, http.redaction) : dataIn(answer, http.redaction);
}

async function fileIn(answer: ProviderHttpResponse, redaction: CredentialRedactor): Promise<DataResponse> {
  const { status, headers } = answer;
  const mediaType = String(headers['content-type'] ?? '').trim();
  const vendorId = idIn(headers, redaction);
  if (FILES.test(mediaType))
    return { kind: 'file', status, mediaType, bytes: redaction.pieces(answer.pieces()), vendorId };
  await answer.bytes(0).catch(() => {}); // hangs up
  throw useless('The upstream sent something else than a file', status, vendorId);
}

async function dataIn(answer: ProviderHttpResponse, redaction: CredentialRedactor): Promise<DataResponse> {
  const { status, headers } = answer;
  const known = idIn(headers, redaction);
  const received = await answer.bytes(MAX_ANSWER_BYTES).catch((failure: UpstreamError) => {
    throw failure.withDetails({ deliveredText: '', vendorId: known });
  });
  try {
    const bytes = redaction.json(received);
    const value: unknown = JSON.parse(bytes.toString());
    return { kind: 'data', status, bytes, value, vendorId: known ?? idInside(value) };
  } catch {
    throw useless('The upstream answered with what is no JSON', status, known);
  }
}

/** It has answered, and will invoice that. */
function useless(message: string, status: number, vendorId: string | undefined): UpstreamError {
  return new UpstreamError('upstream_error', message, { status, deliveredText: '', vendorId });
}

function idIn(headers: ResponseHeaders, redaction: CredentialRedactor): string | undefined {
  const id = parseProviderRequestId({ id: headers['x-request-id'] ?? headers['request-id'] });
  return id === undefined ? undefined : redaction.text(id);
}

function idInside(value: unknown): string | undefined {
  const { requestId, request_id } = (value ?? {}) as { readonly requestId?: unknown; readonly request_id?: unknown };
  return parseProviderRequestId({ id: parseNonEmptyText(requestId) ?? parseNonEmptyText(request_id) });
}
