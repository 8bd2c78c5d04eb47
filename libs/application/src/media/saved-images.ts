/** Saves responses with large images: the images are stored as files, and the response without them. */
import { buffer } from 'node:stream/consumers';
import type { SavedHttpResponse } from '../billing/idempotency-store.ts';
import type { FileName, FileStore } from './file-store.ts';

/** A longer response is delivered, but not saved, unless its images are stored as files. */
export const MAX_SAVED_BYTES = 8 * 1024 * 1024;

/** No text in a JSON string contains this, because its quotes are escaped. */
const EMPTY_IMAGE = '"b64_json":""';

/**
 * Returns the complete response.
 * @returns undefined if an image no longer exists
 * @throws FileStoreUnavailableError
 */
export async function restoreImages(
  { images, ...response }: SavedHttpResponse,
  files: Pick<FileStore, 'find'>,
): Promise<Omit<SavedHttpResponse, 'images'> | undefined> {
  if (!images) return response;
  const [head = '', ...sections] = response.body.toString().split(EMPTY_IMAGE);
  const parts = [head];
  for (const [i, section] of sections.entries()) {
    const base64 = await readBase64(images[i], files);
    if (base64 === undefined) return undefined;
    parts.push(`"b64_json":"${base64}"`, section);
  }
  return { ...response, body: Buffer.from(parts.join('')) };
}

async function readBase64(name: FileName | undefined, files: Pick<FileStore, 'find'>): Promise<string | undefined> {
  const file = name && (await files.find(name));
  return file && (await buffer(file.read())).toString('base64');
}
