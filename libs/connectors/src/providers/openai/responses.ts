/**
 * Responses of OpenAI's Responses API, streamed and non-streaming, without translation. The caller of this module sets
 * the id of the response and the numbers of its events.
 */

import { type Completion, formatSseEvent, type ReportedBill, type SearchStatus, UpstreamError } from '#application';
import type { Usage } from '#domain';
import { type JsonObject } from '#kernel';
import {
  type ClassifyError,
  classifyCommonError,
  MESSAGE_RATE_LIMITED,
  toErrorReport,
  toUsageDetails,
} from '../../http/error-rules.ts';
import { parseLatin1Event, toLatin1Json } from '../../http/latin1.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { type BillFormat, parseReportedBill } from '../../http/reported-bill.ts';
import { EventTranslator } from '../../http/stream-relay.ts';
import { extractGeneratedText } from '../chat/partial-text.ts';
import { MESSAGE_INTERRUPTED } from './chat-chunks.ts';
import { parseOpenAiUsage } from './usage.ts';

/** Events with chunks of generated text. */
const DELTA_TYPES = new Set([
  'response.output_text.delta',
  'response.refusal.delta',
  'response.function_call_arguments.delta',
  'response.custom_tool_call_input.delta',
  'response.reasoning_summary_text.delta',
  'response.reasoning_text.delta',
]);
const FINAL_EVENT_TYPES = new Set(['response.completed', 'response.incomplete']);

export class ResponsesEventTranslator extends EventTranslator {
  private reportedUsage: Usage | undefined;
  private bill: ReportedBill = {};
  private upstreamId: string | undefined;
  private readonly generated: string[] = [];
  private bytes = 0;
  private readonly invoicedSearches = new Set<unknown>();

  constructor(
    private readonly classifyError: ClassifyError = classifyCommonError,
    private readonly billFormat: BillFormat = {},
  ) {
    super();
  }

  usage(): Usage | undefined {
    return this.reportedUsage;
  }

  vendorId(): string | undefined {
    return this.upstreamId;
  }

  reportedBill(): ReportedBill {
    return this.bill;
  }

  getDeliveredText(): string {
    return this.generated.join('');
  }

  getMaxGeneratedTokens(): number {
    return this.bytes;
  }

  hasForwarded(): boolean {
    return this.generated.length > 0;
  }

  /** Number of searches that OpenAI invoices. */
  get invoiced(): number {
    return this.invoicedSearches.size;
  }

  /**
   * Translates the final event and those with output, and drops all others.
   * @throws UpstreamError for a failure or invalid JSON
   */
  protected translateEvent(json: string): string {
    const parsed = parseLatin1Event(json);
    const { type, response, output_index, delta } = parsed;
    this.upstreamId ??= parseProviderRequestId(response);
    if (typeof output_index === 'number') {
      if (DELTA_TYPES.has(type as string)) this.recordText(String(delta));
      if (type === 'response.output_item.done' && isInvoicedSearch(parsed.item as JsonObject))
        this.invoicedSearches.add(output_index);
      return this.translateOutput(parsed, json);
    }
    if (type === 'response.failed' || type === 'error') throw this.parseFailure(parsed);
    if (!FINAL_EVENT_TYPES.has(type as string)) return '';
    this.hasEndMarker = true;
    this.reportedUsage = parseResponsesUsage((response as JsonObject | undefined)?.usage);
    this.bill = parseReportedBill(response, this.billFormat);
    return this.createFinalEvent(parsed);
  }

  private recordText(text: string): void {
    this.generated.push(text);
    this.bytes += Buffer.byteLength(text);
  }

  /** Returns what is forwarded for an event with output: here the event itself. @param json the event in Latin-1 */
  protected translateOutput(_: JsonObject, json: string): string {
    return formatSseEvent(json);
  }

  /** Returns what is forwarded for the final event: here its output, and the reason if the response is incomplete. */
  protected createFinalEvent({ type, response }: JsonObject): string {
    const { output, incomplete_details } = (response ?? {}) as JsonObject;
    return formatJsonEvent({ type, response: { object: 'response', output, incomplete_details } });
  }

  private parseFailure({ type, response, ...event }: JsonObject): UpstreamError {
    const failed = (response ?? {}) as JsonObject;
    this.reportedUsage = parseResponsesUsage(failed.usage);
    // An `error` event has the fields of the error itself: https://platform.openai.com/docs/api-reference/responses-streaming
    const holder = type === 'error' ? { error: event.error ?? event } : failed;
    return toResponseError(holder, this.classifyError);
  }
}

/** Formats an event as Latin-1 text, see `EventTranslator`. */
export function formatJsonEvent(data: unknown): string {
  return formatSseEvent(toLatin1Json(data));
}

/** @throws UpstreamError if `text` is not a response or reports a failure */
export function parseResponsesCompletion(
  text: string,
  classifyError = classifyCommonError,
  billFormat: BillFormat = {},
): Completion {
  const response = parseResponse(text);
  const output = response.output as readonly JsonObject[];
  if (response.status === 'failed') {
    const delivered = output.length > 0 ? extractText(output) : undefined;
    const failure = toResponseError(response, classifyError);
    throw failure.withDetails({
      deliveredText: delivered,
      vendorId: parseProviderRequestId(response),
      ...toUsageDetails(failure, parseResponsesUsage(response.usage)),
    });
  }
  return {
    kind: 'complete',
    protocol: 'responses',
    body: response,
    usage: parseResponsesUsage(response.usage),
    vendorId: () => parseProviderRequestId(response),
    reportedBill: parseReportedBill(response, billFormat),
    getDeliveredText: () => extractText(output),
    searches: collectSearches(output),
  };
}

/** OpenAI invoices only successful searches; opening a page and finding text in it are free. */
function isInvoicedSearch({ type, status, action }: JsonObject): boolean {
  return type === 'web_search_call' && status === 'completed' && ((action ?? {}) as JsonObject).type === 'search';
}

/** Returns the status of a search; undefined for any other item. */
export function toSearchStatus(item: JsonObject, at: number): SearchStatus | undefined {
  if (item.type !== 'web_search_call') return undefined;
  const { query, queries } = (item.action ?? {}) as JsonObject;
  const state = item.status === 'completed' || item.status === 'failed' ? item.status : 'searching';
  return { at, query: String(query ?? (queries as readonly unknown[] | undefined)?.[0] ?? ''), state };
}

function collectSearches(output: readonly JsonObject[]) {
  const calls = output.filter(({ type }) => type === 'web_search_call');
  const statuses = calls.flatMap((item, at) => toSearchStatus(item, at) ?? []);
  return { statuses, invoiced: calls.filter(isInvoicedSearch).length };
}

function parseResponse(text: string): JsonObject {
  let response: JsonObject | null = null;
  try {
    response = JSON.parse(text);
  } catch {} // reported below, like any other unexpected response
  if (Array.isArray(response?.output)) return response;
  const details = {
    status: 200,
    deliveredText: extractGeneratedText(text),
    vendorId: parseProviderRequestId(response),
  };
  throw new UpstreamError('upstream_error', 'The provider sent an invalid response object', details);
}

/** @param failed a response or an event with `error` */
function toResponseError(failed: JsonObject, classifyError: ClassifyError): UpstreamError {
  const report = toErrorReport(failed);
  const failure = classifyError(report);
  if (failure) return failure;
  if (report.code === 'rate_limit_exceeded') return new UpstreamError('rate_limited', MESSAGE_RATE_LIMITED);
  return new UpstreamError('upstream_error', MESSAGE_INTERRUPTED);
}

/** Converts a usage with the field names of the Responses API. */
function parseResponsesUsage(reported: unknown): Usage | undefined {
  if (typeof reported !== 'object' || reported === null) return undefined;
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = reported as JsonObject;
  return parseOpenAiUsage({
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    prompt_tokens_details: input_tokens_details,
    completion_tokens_details: output_tokens_details,
  });
}

/** Returns all generated text: content, tool calls and visible reasoning. */
function extractText(output: readonly JsonObject[]): string {
  return output
    .flatMap(({ content, summary, name, arguments: args, input }) => [
      ...extractPartTexts(summary),
      ...extractPartTexts(content),
      ...[args, input].flatMap((text) => (typeof text === 'string' ? [`${name}${text}`] : [])),
    ])
    .join('');
}

function extractPartTexts(parts: unknown): readonly string[] {
  if (!Array.isArray(parts)) return [];
  return (parts as readonly JsonObject[])
    .flatMap(({ text, refusal }) => [text, refusal])
    .filter((text) => typeof text === 'string');
}
