/** Files that are contained in a URI (RFC 2397). */
import { DownloadError } from './downloads.ts';

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

/** @throws DownloadError if the text is not a data URI in strict base64, is empty, or has more than `maxBytes` bytes */
export function parseDataUri(text: string, maxBytes: number): DataUri {
  const head = HEAD.exec(text.slice(0, MAX_HEAD_LENGTH));
  const base64 = head ? text.slice(head[0].length) : '';
  if (!head || base64 === '')
    throw new DownloadError('A data URI must be encoded in base64 and must not be empty', 'rejected');
  if (base64.length > Math.ceil(maxBytes / 3) * 4)
    throw new DownloadError(`A data URI must have at most ${maxBytes} bytes`, 'too_large');
  if (base64.length % 4 !== 0 || !BASE64.test(base64))
    throw new DownloadError('A data URI must be valid base64 with padding', 'rejected');
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.length > maxBytes) throw new DownloadError(`A data URI must have at most ${maxBytes} bytes`, 'too_large');
  return { declaredType: head.groups?.type?.toLowerCase(), bytes };
}
