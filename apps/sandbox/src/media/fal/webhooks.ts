/**
 * fal's webhooks. They are signed with a private key, and the public key is published. A webhook is repeated after each
 * of RETRY_DELAYS_MS until a response has status 2xx.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

/** Ten retries within two hours. */
const RETRY_DELAYS_MS = [250, 5_000, 15_000, 60_000, 300_000, 600_000, 900_000, 1_200_000, 1_800_000, 1_800_000];
const TIMEOUT_MS = 15_000;
const USER = 'sandbox-user';

export interface FalWebhookEvent {
  readonly requestId: string;
  readonly url: string;
  readonly status: 'OK' | 'ERROR';
  readonly payload: unknown;
  readonly error?: string;
}

export class FalWebhooks {
  private readonly keys = generateKeyPairSync('ed25519');
  private readonly closing = new AbortController();

  /** Returns the public keys for verifying signatures. */
  getJwks() {
    const { kty, crv, x } = this.keys.publicKey.export({ format: 'jwk' });
    return { keys: [{ kty, crv, x, kid: 'sandbox', use: 'sig' }] };
  }

  async send(event: FalWebhookEvent): Promise<void> {
    for (const wait of [0, ...RETRY_DELAYS_MS]) {
      try {
        if (wait > 0) await delay(wait, undefined, { ref: false, signal: this.closing.signal });
        if (await this.post(event, this.keys.privateKey)) return;
      } catch {
        if (this.closing.signal.aborted) return; // any other error means no response, so the webhook is sent again
      }
    }
  }

  /** Sends a webhook as a third party without the key would. */
  async sendForged(event: FalWebhookEvent): Promise<void> {
    // a forged webhook is not repeated
    await this.post(event, generateKeyPairSync('ed25519').privateKey).catch(() => false);
  }

  close(): void {
    this.closing.abort();
  }

  private async post({ requestId, url, status, payload, error }: FalWebhookEvent, key: KeyObject): Promise<boolean> {
    const notification = {
      request_id: requestId,
      gateway_request_id: requestId,
      status,
      ...(error ? { error } : {}),
      payload,
    };
    const body = JSON.stringify(notification);
    const time = String(Math.floor(Date.now() / 1_000));
    const digest = createHash('sha256').update(body).digest('hex');
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'fal.ai webhook',
      'x-fal-webhook-request-id': randomUUID(),
      'x-fal-webhook-user-id': USER,
      'x-fal-webhook-timestamp': time,
    };
    const signed = [headers['x-fal-webhook-request-id'], USER, time, digest].join('\n');
    const signature = sign(null, Buffer.from(signed), key).toString('hex');
    const signal = AbortSignal.any([this.closing.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'x-fal-webhook-signature': signature },
      body,
      signal,
    });
    await response.arrayBuffer();
    return response.ok;
  }
}
