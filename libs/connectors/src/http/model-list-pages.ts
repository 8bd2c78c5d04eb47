/** Reads a provider's list of models, which may have several pages. */
import { UpstreamError } from '#application';

/** Anthropic and Google send up to 1,000 models per page, and have about 100. */
const MAX_PAGES = 10;

/**
 * @param path of the list, with the query of the first page
 * @param readPage returns the parsed response of a page
 * @returns the pages in order
 * @throws UpstreamError if the list does not end
 */
export async function readModelListPages(
  path: string,
  readPage: (path: string) => Promise<unknown>,
): Promise<readonly unknown[]> {
  const pages: unknown[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    if (pages.length === MAX_PAGES)
      throw new UpstreamError('upstream_error', `Its list of models has more than ${MAX_PAGES} pages`);
    const page = await readPage(next);
    pages.push(page);
    const cursor = findCursor(page);
    next = cursor && `${path}${path.includes('?') ? '&' : '?'}${new URLSearchParams(cursor)}`;
  }
  return pages;
}

/** Returns the query of the next page; undefined after the last one, and for a list without pages. */
function findCursor(page: unknown): Readonly<Record<string, string>> | undefined {
  const { has_more, last_id, nextPageToken } = (page ?? {}) as Readonly<Record<string, unknown>>;
  // https://platform.claude.com/docs/en/api/models/list
  if (has_more === true && typeof last_id === 'string') return { after_id: last_id };
  // https://ai.google.dev/api/models#method:-models.list
  if (typeof nextPageToken === 'string' && nextPageToken !== '') return { pageToken: nextPageToken };
  return undefined;
}
