/** Range requests (RFC 9110, section 14). */
import type { ByteRange } from '#application';

const ONE_RANGE = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i;

export type RequestedRange =
  | { readonly kind: 'complete' }
  | { readonly kind: 'part'; readonly range: ByteRange }
  | { readonly kind: 'none' };

/**
 * Returns which part of a file of `size` bytes to send. This is the complete file, unless there is exactly one valid
 * range and `ifRange` is missing or equals `etag`.
 * @returns kind `none` if the range is not satisfiable
 */
export function parseRange(
  range: string | undefined,
  ifRange: string | undefined,
  etag: string,
  size: number,
): RequestedRange {
  const [, first = '', last = ''] = ONE_RANGE.exec(range ?? '') ?? [];
  const isRange = first !== '' || last !== '';
  if (!isRange || (ifRange !== undefined && ifRange !== etag)) return { kind: 'complete' };
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== '' && last !== '' && Number(last) < Number(first)) return { kind: 'complete' };
  const isSatisfiable = start < size && !(first === '' && Number(last) === 0);
  return isSatisfiable ? { kind: 'part', range: { start, end } } : { kind: 'none' };
}
