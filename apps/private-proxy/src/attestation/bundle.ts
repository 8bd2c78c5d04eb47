import { gunzipSync } from 'node:zlib';
import { AttestationError, withAttestationError } from './attestation-verifier.ts';

/** The evidence of an enclave, in Tinfoil's format. Untrusted until its signatures are verified. */
export interface AttestationBundle {
  readonly report: { readonly format: string; readonly body: string };
  /** Other fields, which only some report formats use. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Maximum size of a bundle: roughly the length of its JSON. Real bundles have about 17,000 characters. */
const MAX_BUNDLE_CHARACTERS = 1024 * 1024;
const MAX_DEPTH = 32;

/** @throws AttestationError if the value is not a bundle, is too large or is nested too deeply */
export function parseBundle(value: unknown): AttestationBundle {
  const { enclaveAttestationReport, ...fields } = parseBundleObject(assertWithinLimits(value), 'the bundle');
  const { format, body } = parseBundleObject(enclaveAttestationReport, 'enclaveAttestationReport');
  return {
    report: {
      format: parseBundleText(format, 'the format of the report', 200),
      body: parseBundleText(body, 'the body of the report'),
    },
    fields,
  };
}

export function parseBundleObject(value: unknown, name: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AttestationError(`${name} is not an object`);
  return value as Readonly<Record<string, unknown>>;
}

export function parseBundleText(value: unknown, name: string, maxLength = MAX_BUNDLE_CHARACTERS): string {
  if (typeof value !== 'string' || value === '') throw new AttestationError(`${name} is missing`);
  if (value.length > maxLength) throw new AttestationError(`${name} is too long`);
  return value;
}

/**
 * @throws AttestationError if the value is empty, not canonical base64, or longer than the base64 of `maxBytes` bytes
 */
export function parseBase64(value: unknown, name: string, maxBytes: number): Buffer {
  const text = parseBundleText(value, name, Math.ceil(maxBytes / 3) * 4);
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw new AttestationError(`${name} is not base64`);
  return bytes;
}

/** @throws AttestationError if `packed` is not gzip, or decompresses to more than `maxBytes` bytes */
export function gunzip(packed: Uint8Array, name: string, maxBytes: number): Buffer {
  return withAttestationError(`${name} is not gzip of at most ${maxBytes} bytes`, () =>
    gunzipSync(packed, { maxOutputLength: maxBytes }),
  );
}

/**
 * Limits depth and size before other code recurses into the value. The value comes from `JSON.parse`, so it has no
 * cycles.
 */
function assertWithinLimits(value: unknown): unknown {
  let remaining = MAX_BUNDLE_CHARACTERS;
  const walk = (part: unknown, depth: number): void => {
    remaining -= typeof part === 'string' ? part.length + 2 : 1;
    if (depth > MAX_DEPTH || remaining < 0) throw new AttestationError('the bundle is too large or nested too deeply');
    if (typeof part !== 'object' || part === null) return;
    for (const [name, inner] of Object.entries(part)) {
      remaining -= name.length;
      walk(inner, depth + 1);
    }
  };
  walk(value, 0);
  return value;
}
