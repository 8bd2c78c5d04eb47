/** Web searches that Anthropic runs while it generates a completion. */
import type { SearchPage, SearchStatus } from '#application';
import { parseSearchCount } from '../../http/parse-reported.ts';
import type { AnthropicContentBlock, SearchResultBlock } from './blocks.ts';

/** The name of Anthropic's search tool; no other tool of a request may have this name. */
export const WEB_SEARCH = 'web_search';
/** https://docs.claude.com/en/docs/agents-and-tools/tool-use/web-search-tool */
export const SEARCH_TOOL_TYPE = 'web_search_20250305';

/** Tracks the searches of one completion. */
export class SearchTracker {
  private readonly started = new Map<string, SearchStatus>();
  private readonly ended: SearchStatus[] = [];
  private reported: number | undefined;
  /** Number of ended searches that earlier calls for the same turn have made. */
  private readonly earlierCount: number;

  /** @param earlier content of the turn that the completion continues */
  constructor(earlier: readonly AnthropicContentBlock[] = []) {
    this.recordContent(earlier);
    this.earlierCount = this.ended.length;
  }

  recordContent(content: readonly AnthropicContentBlock[]): void {
    for (const block of content) {
      if (block.type === 'server_tool_use' && block.name === WEB_SEARCH) this.begin(block.id, block.input);
      if (block.type === 'web_search_tool_result') this.end(block);
    }
  }

  /** @param input the arguments of the tool */
  begin(id: string, input: unknown): SearchStatus {
    const { query } = (input ?? {}) as { query?: unknown };
    const status: SearchStatus = {
      id,
      at: this.started.size,
      query: typeof query === 'string' ? query : '',
      state: 'searching',
    };
    this.started.set(id, status);
    return status;
  }

  end({ tool_use_id, content }: SearchResultBlock): SearchStatus {
    const status = this.started.get(tool_use_id) ?? {
      ...this.begin(tool_use_id, undefined),
      isResumed: true,
    };
    const ended: SearchStatus = Array.isArray(content)
      ? { ...status, state: 'completed', results: content.flatMap(parsePage) }
      : { ...status, state: 'failed' };
    this.started.set(tool_use_id, ended);
    this.ended.push(ended);
    return ended;
  }

  /** Records the invoiced searches of a usage, if it reports them. */
  recordUsage(usage: unknown): void {
    const { server_tool_use: serverToolUse } = (usage ?? {}) as {
      server_tool_use?: { web_search_requests?: unknown } | null;
    };
    this.reported = parseSearchCount(serverToolUse?.web_search_requests) ?? this.reported;
  }

  /** Searches that have ended, and then those that have not. */
  get statuses(): readonly SearchStatus[] {
    return [...this.ended, ...[...this.started.values()].filter(({ state }) => state === 'searching')];
  }

  /** The reported number, or else the number of successful searches of this call: failed ones are not invoiced. */
  get invoiced(): number {
    const completed = this.ended.slice(this.earlierCount).filter(({ state }) => state === 'completed');
    return this.reported ?? completed.length;
  }
}

function parsePage(result: unknown): SearchPage[] {
  const {
    url,
    title,
    encrypted_content: encrypted,
  } = (result ?? {}) as {
    url?: unknown;
    title?: unknown;
    encrypted_content?: unknown;
  };
  if (typeof url !== 'string') return [];
  return [
    { url, title: typeof title === 'string' ? title : url, ...(typeof encrypted === 'string' ? { encrypted } : {}) },
  ];
}
