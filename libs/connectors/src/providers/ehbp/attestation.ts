/** Fetches the attestation of an enclave unverified: the client that encrypts for the enclave verifies it. */
import { UpstreamError } from '#application';
import { toUpstreamErrorFromStatus } from '../../http/json-http-client.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';

const MAX_BYTES = 1024 * 1024;

/** @throws UpstreamError if the enclave does not return an attestation */
export async function fetchAttestation(
  http: ProviderHttp,
  enclave: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await http.request(`${enclave}/attestation`, {
    method: 'GET',
    headers: { accept: 'application/json' },
    signal,
    mapErrorResponse: (status, headers) =>
      status < 500 && status !== 429
        ? new UpstreamError('upstream_error', 'The enclave did not return an attestation', { status })
        : toUpstreamErrorFromStatus(status, headers),
  });
  const bundle = parseJsonObject(await response.bytes(MAX_BYTES));
  if (bundle === undefined) throw new UpstreamError('upstream_error', 'The enclave did not return an attestation');
  return bundle;
}

function parseJsonObject(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined; // invalid JSON
  }
}
