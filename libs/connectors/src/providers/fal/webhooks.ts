/** Verification of fal's webhooks: https://fal.ai/docs/model-apis/webhooks */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { getGlobalDispatcher } from 'undici';
import { type ProviderWebhook, UpstreamError } from '#application';
import { sendProviderRequest } from '../../http/provider-request.ts';

/** fal's documentation allows keys to be cached for at most 24 hours. */
const KEYS_MAX_AGE_MS = 12 * 60 * 60_000;
/** If no key matches, fal may have new keys. This interval limits how often forged webhooks can cause a fetch. */
const KEYS_REFETCH_INTERVAL_MS = 60_000;
const KEYS_TIMEOUT_MS = 5_000;
const MAX_KEYS = 16;
/** Maximum difference between the timestamp of a webhook and the gateway's clock. */
const TOLERANCE_SECONDS = 300;
const SIGNATURE = /^[0-9a-f]{128}$/i;

/** Verifies the Ed25519 signature of a webhook with the keys that fal publishes. */
export class FalWebhookVerifier {
  private keys: readonly KeyObject[] = [];
  private keysFetchedAt = Number.NEGATIVE_INFINITY;

  /** @param keysUrl the only URL from which keys are fetched */
  constructor(
    private readonly keysUrl: string,
    private readonly now: () => number = Date.now,
  ) {}

  async verifySignature({ headers, body }: ProviderWebhook): Promise<boolean> {
    const getHeader = (name: string) => String(headers[`x-fal-webhook-${name}`] ?? '');
    const [id, user, time, signature] = ['request-id', 'user-id', 'timestamp', 'signature'].map(getHeader);
    const age = Math.abs(this.now() / 1_000 - Number(time));
    if (!/^\d+$/.test(time ?? '') || age > TOLERANCE_SECONDS || !SIGNATURE.test(signature ?? '')) return false;
    const digest = createHash('sha256').update(body).digest('hex');
    const signed = Buffer.from([id, user, time, digest].join('\n'));
    const isSignedBy = (key: KeyObject) => verify(null, signed, key, Buffer.from(signature ?? '', 'hex'));
    const keysAge = this.now() - this.keysFetchedAt;
    if (keysAge < KEYS_MAX_AGE_MS && this.keys.some(isSignedBy)) return true;
    if (keysAge < KEYS_REFETCH_INTERVAL_MS) return false;
    await this.fetchKeys();
    return this.keys.some(isSignedBy);
  }

  /** @throws UpstreamError if the keys cannot be fetched; fal then repeats the webhook */
  private async fetchKeys(): Promise<void> {
    this.keysFetchedAt = this.now();
    const response = await sendProviderRequest(this.keysUrl, getGlobalDispatcher(), {
      method: 'GET',
      headers: {},
      signal: AbortSignal.timeout(KEYS_TIMEOUT_MS),
      mapErrorResponse: (status) =>
        new UpstreamError('upstream_error', `fal's webhook keys cannot be fetched: status ${status}`, { status }),
    });
    const { keys } = ((await response.json()) ?? {}) as { readonly keys?: unknown };
    this.keys = (Array.isArray(keys) ? keys.slice(0, MAX_KEYS) : []).flatMap(parseKey);
  }
}

function parseKey(jwk: unknown): readonly KeyObject[] {
  const { kty, crv, x } = (jwk ?? {}) as Readonly<Record<string, unknown>>;
  if (kty !== 'OKP' || crv !== 'Ed25519' || typeof x !== 'string') return [];
  try {
    return [createPublicKey({ key: { kty, crv, x }, format: 'jwk' })];
  } catch {
    return []; // not a point of the curve
  }
}
