/** What a vendor of data means by a status that is no success. */
import { UpstreamError } from '#application';
import { toUpstreamErrorFromStatus } from '../../http/json-http-client.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';

/** A vendor's words about our account with it, which it may put behind any status. */
const ABOUT_US =
  /api[ _-]?key|access[ _-]?token|unauthori[sz]ed|credential|subscription|(out of|insufficient|no) credits|insufficient (balance|funds)|\b(plan|usage)[ _-]limit|\bquota\b/i;
/** Where vendors put their words. */
const FIELDS = ['message', 'error', 'errors', 'detail', 'details', 'error_message', 'msg', 'title', 'description'];
const DEEPEST = 4;

export function complaint(status: number, headers: ResponseHeaders, text: string): UpstreamError {
  const said = saidIn(text);
  const isOurs = ABOUT_US.test(text) || ABOUT_US.test(said ?? '');
  if (status === 404) {
    const words = isOurs ? {} : { upstreamMessage: said };
    return new UpstreamError('invalid_request', 'The upstream has found nothing', { status, ...words });
  }
  if (isOurs && (status === 400 || status === 422))
    return new UpstreamError('upstream_error', 'The upstream refused us', { status });
  return toUpstreamErrorFromStatus(status, headers, { upstreamMessage: said });
}

function saidIn(text: string): string | undefined {
  try {
    return wordsOf(JSON.parse(text), DEEPEST);
  } catch {
    return undefined;
  }
}

/** The first text in a field that is meant for one. */
function wordsOf(value: unknown, depth: number): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value;
  if (typeof value !== 'object' || value === null || depth === 0) return undefined;
  const inside = Array.isArray(value) ? value.slice(0, 1) : FIELDS.map((name) => (value as Fields)[name]);
  for (const each of inside) {
    const words = wordsOf(each, depth - 1);
    if (words !== undefined) return words;
  }
  return undefined;
}

type Fields = Readonly<Record<string, unknown>>;
