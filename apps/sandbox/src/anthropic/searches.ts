/** The content blocks of web searches that the simulated Anthropic API runs. */
import type { ProviderSearch, SandboxModelOutput } from '../provider/model-output.ts';

const RESULTS = 3;
/** Stands for encrypted content; it is not encrypted. */
export const ENCRYPTED = 'c2FuZGJveA==';

/** The model itself has called the tool, and not code that it runs. */
export const DIRECT_CALLER = { type: 'direct' };

export interface SearchBlock {
  readonly type: 'server_tool_use' | 'web_search_tool_result';
  readonly [field: string]: unknown;
}

/** Returns a call block and a result block for each search. */
export function createSearchBlocks({ serial, searches }: SandboxModelOutput): readonly SearchBlock[] {
  return searches.flatMap((search, at): SearchBlock[] => {
    const id = `srvtoolu_${serial}${at}`;
    return [
      { type: 'server_tool_use', id, name: 'web_search', input: { query: search.query }, caller: DIRECT_CALLER },
      { type: 'web_search_tool_result', tool_use_id: id, content: toResultContent(search, at), caller: DIRECT_CALLER },
    ];
  });
}

/** Cites the first page of each successful search. */
export function toCitations({ searches }: SandboxModelOutput) {
  return searches.flatMap((search, at) => {
    const [first] = createPages(search, at);
    if (!first) return [];
    const { url, title } = first;
    return [
      { type: 'web_search_result_location', url, title, encrypted_index: ENCRYPTED, cited_text: 'every coin that' },
    ];
  });
}

function toResultContent(search: ProviderSearch, at: number) {
  if (search.failed) return { type: 'web_search_tool_result_error', error_code: 'unavailable' };
  return createPages(search, at);
}

function createPages({ failed }: ProviderSearch, at: number) {
  return Array.from({ length: failed ? 0 : RESULTS }, (_, i) => ({
    type: 'web_search_result',
    url: `https://site${i + 1}.example/${at + 1}`,
    title: `Page ${i + 1}`,
    encrypted_content: ENCRYPTED,
    page_age: 'January 1, 2026',
  }));
}
