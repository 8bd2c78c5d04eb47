import type { Call } from '../router.ts';
import { invalidRequestError } from './errors.ts';

/** Parses a multipart body. @throws HttpError 400 or 413 */
export async function parseForm(call: Call): Promise<FormData> {
  const headers = { 'content-type': call.request.headers['content-type'] ?? '' };
  // rejected below
  const form = await new Response(new Uint8Array(await call.readBody()), { headers }).formData().catch(() => undefined);
  if (form) return form;
  throw invalidRequestError(400, 'We could not parse the multipart body of your request.');
}
