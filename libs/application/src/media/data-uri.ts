/** Files that are contained in a URI (RFC 2397). */

import { DownloadError } from '../downloads.ts';
import { divide } from '../event-loop.ts';

const HEAD = /^data:(?<type>[\w.+-]+\/[\w.+-]+)?(?:;[\w.+-]+=[\w.+-]+)*;base64,/i;
/** Maximum length of the part before the data. */
const MAX_HEAD_LENGTH = 256;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

export interface DataUri {
  /** As the URI declares it, in lower case. */
  readonly declaredType: string | undefined;
  readonly bytes: Uint8Array;
}

export function isDataUri(text: string): boolean {
  return /^data:/i.test(text);
}

/**
 * Does not hold the event loop.
 * @throws DownloadError if the text is not a data URI in strict base64, is empty, or has more than `maxBytes` bytes
 */
export async function parseDataUri(text: string, maxBytes: number): Promise<DataUri> {
  const head = HEAD.exec(text.slice(0, MAX_HEAD_LENGTH));
  const base64 = head ? text.slice(head[0].length) : '';
  if (!head || base64 === '')
    throw new DownloadError('A data URI must be encoded in base64 and must not be empty', 'rejected');
  const size = (base64.length / 4) * 3 - countPadding(base64);
  if (size > maxBytes) throw new DownloadError(`A data URI must have at most ${maxBytes} bytes`, 'too_large');
  const bytes = base64.length % 4 === 0 ? await decode(base64, size) : undefined;
  if (!bytes) throw new DownloadError('A data URI must be valid base64 with padding', 'rejected');
  return { declaredType: head.groups?.type?.toLowerCase(), bytes };
}

function countPadding(base64: string): number {
  if (base64.endsWith('==')) return 2;
  return base64.endsWith('=') ? 1 : 0;
}

/** @returns undefined if the text is not strict base64 of this number of bytes */
async function decode(base64: string, size: number): Promise<Buffer | undefined> {
  const bytes = Buffer.allocUnsafe(size);
  let decodedSize = 0;
  for await (const section of divide(base64)) {
    if (!BASE64.test(section)) return undefined;
    decodedSize += bytes.write(section, decodedSize, 'base64');
  }
  return decodedSize === size ? bytes : undefined;
}
