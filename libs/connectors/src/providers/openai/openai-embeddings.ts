import { type EmbeddingCall, type EmbeddingsResponse, UpstreamError } from '#application';
import type { JsonHttpClient } from '../../http/json-http-client.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { type BillFormat, parseReportedBill } from '../../http/reported-bill.ts';
import { parseOpenAiUsage } from './usage.ts';

/** Matches the brackets, braces and strings of a JSON text. */
const MARKS = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}]/g;

/** Embeddings with OpenAI's protocol. */
export class OpenAiEmbeddings {
  constructor(
    private readonly endpoint: JsonHttpClient,
    private readonly billFormat: BillFormat,
  ) {}

  async embed({ body, count, signal }: EmbeddingCall): Promise<EmbeddingsResponse> {
    const text = await this.endpoint.post(body, signal);
    const response = parse(text, count);
    const { usage } = response;
    const reported = typeof usage === 'object' && usage !== null ? { completion_tokens: 0, ...usage } : undefined;
    return {
      data: toDataJson(text, response.data, String(body.encoding_format)),
      usage: parseOpenAiUsage(reported),
      vendorId: parseProviderRequestId(response),
      reportedBill: parseReportedBill(response, this.billFormat),
    };
  }
}

interface Embedding {
  readonly embedding: string | readonly number[];
}

function parse(text: string, count: number): { readonly data: readonly Embedding[]; readonly usage?: unknown } {
  let response: { readonly data?: unknown; readonly usage?: unknown } | null = null;
  try {
    response = JSON.parse(text);
  } catch {} // reported below, like any other unexpected response
  const data = response?.data;
  if (Array.isArray(data) && data.length === count && data.every(isEmbedding)) return { ...response, data };
  const details = { status: 200, deliveredText: text };
  throw new UpstreamError('upstream_error', 'The provider sent a response that is not a list of embeddings', details);
}

function isEmbedding(value: unknown): value is Embedding {
  const vector = (value as Partial<Embedding> | null)?.embedding;
  return typeof vector === 'string' || Array.isArray(vector);
}

/**
 * Returns the JSON of the list as the provider sent it, or rewritten if an embedding does not have the requested
 * format.
 */
function toDataJson(text: string, data: readonly Embedding[], format: string): string {
  const expectedType = format === 'base64' ? 'string' : 'object';
  if (data.every(({ embedding }) => typeof embedding === expectedType)) return extractMember(text, 'data');
  return JSON.stringify(data.map((item) => ({ ...item, embedding: encodeVector(item.embedding, format) })));
}

/** The base64 format encodes little-endian 32-bit floats. */
function encodeVector(vector: string | readonly number[], format: string): string | readonly number[] {
  if (format === 'base64' && typeof vector !== 'string') {
    const bytes = Buffer.alloc(vector.length * 4);
    vector.forEach((number, i) => {
      bytes.writeFloatLE(number, i * 4);
    });
    return bytes.toString('base64');
  }
  if (format === 'base64' || typeof vector !== 'string') return vector;
  const bytes = Buffer.from(vector, 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
}

/**
 * Returns the text of the array with this name in the outermost object; '[]' if there is none.
 * @param json valid JSON
 */
function extractMember(json: string, name: string): string {
  let depth = 0;
  let start = -1;
  let last = '';
  for (const { 0: mark, index } of json.matchAll(MARKS)) {
    if (mark === ']' || mark === '}') depth--;
    if (start >= 0 && depth === 1) return json.slice(start, index + 1);
    if (mark === '[' && depth === 1 && last === `"${name}"`) start = index;
    if (mark === '[' || mark === '{') depth++;
    if (depth === 1) last = mark;
  }
  return '[]';
}
