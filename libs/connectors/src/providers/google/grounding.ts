/**
 * The searches of Google and the sources of a response. Their format is `GroundingMetadata` of
 * https://github.com/googleapis/js-genai, explained at https://ai.google.dev/gemini-api/docs/google-search.
 */
import type { SearchStatus } from '#application';
import { isJsonObject, type JsonObject } from '#kernel';
import { MAX_SEARCHES, parseNonEmptyText, parseTokenCount } from '../../http/parse-reported.ts';
import type { GenerateContentResponse } from './chat-outcome.ts';

const MAX_QUERY_CHARACTERS = 2_000;
const MAX_SOURCES = 500;
const MAX_ANNOTATIONS = 500;
const MAX_URL_CHARACTERS = 2_048;
const MAX_TITLE_CHARACTERS = 500;

/** What a response, or an event of a stream, adds to what is known. */
interface GroundingUpdate {
  readonly searches: readonly SearchStatus[];
  /** In OpenAI's format. */
  readonly annotations: readonly JsonObject[];
}

interface Source {
  readonly url: string;
  readonly title: string;
}

/** Start and end of a part of the text, as offsets of JavaScript's characters; the end is exclusive. */
type TextRange = readonly [start: number, end: number];

/** Collects the searches and sources of one response. Any number of the events of a stream may contain them. */
export class GroundingTracker {
  private readonly searches = new Map<string, SearchStatus>();
  private readonly knownAnnotations = new Set<string>();
  /** A source that cannot be cited is undefined, so that the indexes of the others do not change. */
  private sources: readonly (Source | undefined)[] = [];

  /** @param content the text of the response so far */
  record({ candidates }: GenerateContentResponse, content: string): GroundingUpdate {
    const metadata = candidates?.[0]?.groundingMetadata;
    if (!isJsonObject(metadata)) return { searches: [], annotations: [] };
    const sources = toArray(metadata.groundingChunks).slice(0, MAX_SOURCES);
    if (sources.length > 0) this.sources = sources.map(parseSource);
    return {
      searches: this.recordQueries(toArray(metadata.webSearchQueries)),
      annotations: this.recordSupports(toArray(metadata.groundingSupports), content),
    };
  }

  get statuses(): readonly SearchStatus[] {
    return [...this.searches.values()];
  }

  /**
   * Number of searches that Google invoices: each query of a response, but neither a repeated nor an empty one
   * (https://ai.google.dev/gemini-api/docs/google-search#pricing). Its metadata contains such queries.
   */
  get invoiced(): number {
    return this.searches.size;
  }

  /**
   * Returns the searches that are new, which are charged. Queries beyond the maximum are implausible. Google does not
   * report which pages a query has found.
   */
  private recordQueries(queries: readonly unknown[]): readonly SearchStatus[] {
    const previousCount = this.searches.size;
    for (const reported of queries) {
      const query = parseNonEmptyText(reported)?.slice(0, MAX_QUERY_CHARACTERS);
      if (query === undefined || this.searches.has(query) || this.searches.size >= MAX_SEARCHES) continue;
      this.searches.set(query, { at: this.searches.size, query, state: 'completed' });
    }
    return this.statuses.slice(previousCount);
  }

  /** Returns the annotations that are new. */
  private recordSupports(supports: readonly unknown[], content: string): readonly JsonObject[] {
    const bytes = Buffer.from(content);
    const annotations: JsonObject[] = [];
    for (const support of supports.slice(0, MAX_ANNOTATIONS)) {
      const { segment, groundingChunkIndices } = isJsonObject(support) ? support : {};
      const range = isJsonObject(segment) ? locateSegment(segment, content, bytes) : undefined;
      if (!range) continue;
      for (const index of toArray(groundingChunkIndices).slice(0, MAX_SOURCES)) {
        const source = this.sources[parseTokenCount(index) ?? MAX_SOURCES];
        if (source && this.isNewAnnotation(source, range)) annotations.push(toAnnotation(source, range));
      }
    }
    return annotations;
  }

  private isNewAnnotation({ url }: Source, [start, end]: TextRange): boolean {
    const key = `${start} ${end} ${url}`;
    if (this.knownAnnotations.has(key) || this.knownAnnotations.size >= MAX_ANNOTATIONS) return false;
    this.knownAnnotations.add(key);
    return true;
  }
}

function parseSource(chunk: unknown): Source | undefined {
  const { uri, title } = isJsonObject(chunk) && isJsonObject(chunk.web) ? chunk.web : {};
  if (typeof uri !== 'string' || uri.length > MAX_URL_CHARACTERS) return undefined;
  if (!/^https?:$/.test(URL.parse(uri)?.protocol ?? '')) return undefined;
  return { url: uri, title: (parseNonEmptyText(title) ?? uri).slice(0, MAX_TITLE_CHARACTERS) };
}

/**
 * Finds the part of the text that a source supports. Google counts bytes of UTF-8 from the start of a part, and the
 * parts of a stream are not those of the response. So its text decides if it is elsewhere in the response.
 * @param bytes `content` in UTF-8
 */
function locateSegment(
  { startIndex = 0, endIndex, text }: JsonObject,
  content: string,
  bytes: Buffer,
): TextRange | undefined {
  const [startByte, endByte] = [parseTokenCount(startIndex), parseTokenCount(endIndex)];
  const isValid = startByte !== undefined && endByte !== undefined && startByte < endByte && endByte <= bytes.length;
  const isAscii = bytes.length === content.length;
  const toOffset = (count: number) => (isAscii ? count : bytes.toString('utf8', 0, count).length);
  const range: TextRange | undefined = isValid ? [toOffset(startByte), toOffset(endByte)] : undefined;
  const expected = parseNonEmptyText(text);
  if (expected === undefined || (range && content.slice(...range) === expected)) return range;
  const start = content.indexOf(expected);
  return start < 0 ? range : [start, start + expected.length];
}

function toAnnotation({ url, title }: Source, [start_index, end_index]: TextRange): JsonObject {
  return { type: 'url_citation', url_citation: { url, title, start_index, end_index } };
}

function toArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
