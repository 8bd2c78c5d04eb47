/** Creates and verifies signed links. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Secrets } from '../secrets.ts';
import { MAX_LINK_LIFETIME_MS, MediaLinks } from './media-links.ts';

/** What a signature is for: a signature for a file does not open a status, and vice versa. */
export type LinkPurpose = 'file' | 'status';

/** The signature parameters of a URL, not validated. */
export interface SignatureParameters {
  readonly exp?: unknown;
  readonly sig?: unknown;
}

export type LinkCheck =
  | { readonly ok: true /** Remaining lifetime. */; readonly seconds: number }
  | { readonly ok: false; readonly reason: 'invalid' | 'expired' };

const EXPIRY = /^[1-9]\d{0,11}$/;
/** The first part of the signed text, so that no other format can be mistaken for this one. */
const VERSION = 'v1';

export function toFilePath(id: string, n: number | string): string {
  return `/v1/media/${id}/${n}`;
}

export function toStatusPath(jobId: string): string {
  return `/v1/videos/${jobId}`;
}

/**
 * Signs paths for a limited time with a key that is derived from the master key: HMAC-SHA256 over purpose, path and
 * expiry.
 */
export class LinkSigner {
  /** The first key signs new links. */
  private readonly keys: readonly Buffer[];

  constructor(
    secrets: Secrets,
    private readonly clock: Clock,
  ) {
    this.keys = secrets.derivePurposeKeys('countinghouse signed addresses');
  }

  /** @param until milliseconds since 1970; limited to 24 hours from now */
  createQuery(purpose: LinkPurpose, path: string, until: number): string {
    const expiry = Math.floor(Math.min(until, this.clock.nowMs() + MAX_LINK_LIFETIME_MS) / 1000);
    return `exp=${expiry}&sig=${this.createSignatures(purpose, path, String(expiry))[0]}`;
  }

  /** @param path in the form in which it was signed, whatever form the client sent */
  check(purpose: LinkPurpose, path: string, { exp, sig }: SignatureParameters): LinkCheck {
    if (typeof exp !== 'string' || typeof sig !== 'string' || !EXPIRY.test(exp))
      return { ok: false, reason: 'invalid' };
    // Compared as text, because several base64 texts can stand for the same bytes.
    const providedSignature = Buffer.from(sig);
    const isMatch = (text: string) =>
      text.length === providedSignature.length && timingSafeEqual(Buffer.from(text), providedSignature);
    if (!this.createSignatures(purpose, path, exp).some(isMatch)) return { ok: false, reason: 'invalid' };
    const seconds = Number(exp) - Math.floor(this.clock.nowMs() / 1000);
    return seconds > 0 ? { ok: true, seconds } : { ok: false, reason: 'expired' };
  }

  private createSignatures(purpose: LinkPurpose, path: string, expiry: string): readonly string[] {
    const message = `${VERSION}\n${purpose}\nGET\n${path}\n${expiry}`;
    return this.keys.map((key) => createHmac('sha256', key).update(message).digest('base64url'));
  }
}

/** Links start with the public base URL of the API, whatever host a request names. */
export class SignedLinks extends MediaLinks {
  constructor(
    private readonly signer: LinkSigner,
    private readonly getBaseUrl: () => string,
  ) {
    super();
  }

  override createFileUrl(id: string, n: number, until: number): string {
    return this.signUrl('file', toFilePath(id, n), until);
  }

  override createStatusUrl(jobId: string, until: number): string {
    return this.signUrl('status', toStatusPath(jobId), until);
  }

  private signUrl(purpose: LinkPurpose, path: string, until: number): string {
    return `${this.getBaseUrl()}${path}?${this.signer.createQuery(purpose, path, until)}`;
  }
}
