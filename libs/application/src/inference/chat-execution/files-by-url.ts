/**
 * Files that a request names by URL. They are fetched after money is held for the longest file, and are sent to the
 * provider with the request: a provider that fetched them could read more than is held.
 */
import { isUtf8 } from 'node:buffer';
import { buffer } from 'node:stream/consumers';
import { isJsonObject, type JsonObject } from '#kernel';
import { DownloadError, type Downloader } from '../../downloads.ts';
import { toUpstreamError, UpstreamError } from '../../errors.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { getFileUrl } from '../chat/content-parts.ts';
import { countMaxFileTokens, MAX_TOKENS_PER_PDF } from '../chat/count-tokens.ts';
import type { NativeRequest } from '../responses/native-request.ts';

/** Maximum size of all files of a request, in bytes. They are in memory until the response has been sent. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;
/** A text has at most as many tokens as is held for a PDF, and at least 0.75 per byte in the bound of its tokens. */
const MAX_TEXT_BYTES = MAX_TOKENS_PER_PDF / 0.75;
const TIMEOUT_MS = 30_000;
/** Length of the start of a file in which readers of PDF expect its signature. */
const HEAD_BYTES = 1_024;
const FALLBACK_NAME = 'file';
const MAX_NAME_LENGTH = 100;

interface FileRequest {
  readonly body: ChatBody;
  /** The same conversation as items of the Responses API. */
  readonly responses?: NativeRequest | undefined;
}

type FileData = Readonly<Record<'filename' | 'file_data', string>>;

/** The URLs of the files of a request. */
export class FilesByUrl {
  private readonly urls: ReadonlySet<string>;
  private files: ReadonlyMap<string, FileData> | undefined;

  constructor({ body, responses }: FileRequest) {
    const contents = [
      ...body.messages.map(({ content }) => content),
      ...(responses?.items ?? []).flatMap(({ content, output }) => [content, output]),
    ];
    this.urls = new Set(contents.flatMap((content) => listParts(content).flatMap((part) => getFileUrl(part) ?? [])));
  }

  get isEmpty(): boolean {
    return this.urls.size === 0;
  }

  /**
   * Replaces the URLs with the content of the files, which are fetched for the first of several orders of the request.
   * @throws UpstreamError with `invalid_request` if a file cannot be fetched, is too large, or is neither a PDF nor
   *   text
   */
  async inline<R extends FileRequest>(order: R, downloads: Downloader, signal: AbortSignal): Promise<R> {
    if (this.isEmpty) return order;
    this.files ??= await fetchFiles(this.urls, downloads, signal);
    const { files } = this;
    const { body, responses } = order;
    const replace = (content: unknown) =>
      Array.isArray(content) ? content.map((part) => replaceUrl(part, files)) : content;
    const messages = body.messages.map((message) => ({ ...message, content: replace(message.content) }));
    return {
      ...order,
      body: { ...body, messages },
      ...(responses && {
        responses: { ...responses, items: responses.items.map((item) => replaceInItem(item, replace)) },
      }),
    };
  }
}

function replaceInItem(item: JsonObject, replace: (content: unknown) => unknown): JsonObject {
  const fields = ['content', 'output'].filter((name) => Array.isArray(item[name]));
  return { ...item, ...Object.fromEntries(fields.map((name) => [name, replace(item[name])])) };
}

function listParts(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : [];
}

function replaceUrl(part: unknown, files: ReadonlyMap<string, FileData>): unknown {
  const data = files.get(getFileUrl(part) ?? '');
  if (!data || !isJsonObject(part)) return part;
  const { filename = data.filename } = isJsonObject(part.file) ? part.file : part;
  const file = { filename, file_data: data.file_data };
  return part.type === 'file' ? { type: 'file', file } : { type: part.type, ...file };
}

/** Fetches one file after the other, so that their total size is limited. */
async function fetchFiles(
  urls: ReadonlySet<string>,
  downloads: Downloader,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, FileData>> {
  const files = new Map<string, FileData>();
  let maxBytes = MAX_FILE_BYTES;
  for (const url of urls) {
    const bytes = await fetchFile(url, maxBytes, downloads, signal);
    maxBytes -= bytes.length;
    files.set(url, { filename: toFileName(url), file_data: toDataUrl(bytes) });
  }
  return files;
}

async function fetchFile(url: string, maxBytes: number, downloads: Downloader, signal: AbortSignal): Promise<Buffer> {
  try {
    const { bytes } = await downloads.fetchCustomerUrl(url, { maxBytes, timeoutMs: TIMEOUT_MS, signal });
    return await buffer(bytes);
  } catch (error) {
    if (signal.aborted) throw toUpstreamError(signal.reason);
    if (!(error instanceof DownloadError)) throw error;
    throw invalidFile(error.message);
  }
}

/** The content decides what the file is. */
function toDataUrl(bytes: Buffer): string {
  if (bytes.toString('latin1', 0, HEAD_BYTES).includes('%PDF-'))
    return `data:application/pdf;base64,${bytes.toString('base64')}`;
  const data = isUtf8(bytes) ? `data:text/plain;base64,${bytes.toString('base64')}` : '';
  if (bytes.length > MAX_TEXT_BYTES || countMaxFileTokens(data, Number.POSITIVE_INFINITY) > MAX_TOKENS_PER_PDF)
    throw invalidFile(`The file must be a PDF, or a text of at most ${MAX_TEXT_BYTES} bytes in UTF-8`);
  return data;
}

function toFileName(url: string): string {
  const name = new URL(url).pathname.split('/').at(-1) ?? '';
  return name.replace(/[^\w.-]/g, '_').slice(-MAX_NAME_LENGTH) || FALLBACK_NAME;
}

function invalidFile(message: string): UpstreamError {
  return new UpstreamError('invalid_request', `file_url: ${message}`, { param: 'file_url' });
}
