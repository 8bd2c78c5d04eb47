/** fal's web hooks: https://fal.ai/docs/model-apis/webhooks */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { getGlobalDispatcher } from 'undici';
import { type ProviderWebhook, UpstreamError } from '#application';
import { sendProviderRequest } from '../../http/provider-request.ts';

/** fal says that keys are kept for a day at most. */
const KEYS_LAST_MS = 12 * 60 * 60_000;
/** Where no key fits there may be new ones: they are asked for again, but not for each hook that somebody forges. */
const ASKED_AGAIN_MS = 60_000;
const ASKED_WITHIN_MS = 5_000;
const MOST_KEYS = 16;
/** Seconds that a hook may be old, or ahead. */
const TOLERANCE_S = 300;
const SIGNATURE = /^[0-9a-f]{128}$/i;

/** Checks who has signed a hook: Ed25519, with one of the keys that fal publishes. */
export class FalWebhookVerifier {
  private keys: readonly KeyObject[] = [];
  private askedAt = Number.NEGATIVE_INFINITY;

  /** @param keysUrl where the keys are: nothing else is asked for them */
  constructor(
    private readonly keysUrl: string,
    private readonly now: () => number = Date.now,
  ) {}

  async isSigned({ headers, body }: ProviderWebhook): Promise<boolean> {
    const said = (name: string) => String(headers[`x-fal-webhook-${name}`] ?? '');
    const [id, user, time, signature] = ['request-id', 'user-id', 'timestamp', 'signature'].map(said);
    const age = Math.abs(this.now() / 1_000 - Number(time));
    if (!/^\d+$/.test(time ?? '') || age > TOLERANCE_S || !SIGNATURE.test(signature ?? '')) return false;
    const digest = createHash('sha256').update(body).digest('hex');
    const signed = Buffer.from([id, user, time, digest].join('\n'));
    const isBy = (key: KeyObject) => verify(null, signed, key, Buffer.from(signature ?? '', 'hex'));
    const keysAge = this.now() - this.askedAt;
    if (keysAge < KEYS_LAST_MS && this.keys.some(isBy)) return true;
    if (keysAge < ASKED_AGAIN_MS) return false;
    await this.ask();
    return this.keys.some(isBy);
  }

  /** @throws UpstreamError when they cannot be had: the hook comes again */
  private async ask(): Promise<void> {
    this.askedAt = this.now();
    const answer = await sendProviderRequest(this.keysUrl, getGlobalDispatcher(), {
      method: 'GET',
      headers: {},
      signal: AbortSignal.timeout(ASKED_WITHIN_MS),
      refusalOf: (status) => new UpstreamError('upstream_error', `fal's keys cannot be had (${status})`, { status }),
    });
    const { keys } = ((await answer.json()) ?? {}) as { readonly keys?: unknown };
    this.keys = (Array.isArray(keys) ? keys.slice(0, MOST_KEYS) : []).flatMap(keyIn);
  }
}

function keyIn(jwk: unknown): readonly KeyObject[] {
  const { kty, crv, x } = (jwk ?? {}) as Readonly<Record<string, unknown>>;
  if (kty !== 'OKP' || crv !== 'Ed25519' || typeof x !== 'string') return [];
  try {
    return [createPublicKey({ key: { kty, crv, x }, format: 'jwk' })];
  } catch {
    return [];
  }
}
