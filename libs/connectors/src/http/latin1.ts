/** Text of streams as Latin-1, which preserves bytes in any encoding and at any chunk boundary. */
import { UpstreamError } from '#application';
import type { JsonObject } from '#kernel';

export function decodeLatin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/** Serializes a value as JSON in UTF-8, as the data of an event in Latin-1. */
export function toLatin1Json(value: unknown): string {
  return decodeLatin1(Buffer.from(JSON.stringify(value)));
}

/**
 * Parses the data of an event, which is in Latin-1 (see `EventTranslator`).
 * @throws UpstreamError with an open cost if it is not JSON
 */
export function parseLatin1Event(json: string): JsonObject {
  try {
    return JSON.parse(Buffer.from(json, 'latin1').toString('utf8'));
  } catch (cause) {
    throw new UpstreamError('upstream_error', 'The provider sent an event that is not JSON', {
      cause,
      hasOpenCost: true,
    });
  }
}
