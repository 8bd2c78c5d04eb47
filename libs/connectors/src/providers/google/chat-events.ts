/** Translates the server-sent events of Gemini's `streamGenerateContent` to OpenAI's chunks. */
import {
  type CompletionIdentity,
  type FailureCode,
  formatSseEvent,
  type ReportedBill,
  UpstreamError,
} from '#application';
import type { Usage } from '#domain';
import type { JsonObject } from '#kernel';
import { type ClassifyError, MESSAGE_RATE_LIMITED, toErrorReport } from '../../http/error-rules.ts';
import { MESSAGE_TIMEOUT } from '../../http/json-http-client.ts';
import { parseLatin1Event, toLatin1Json } from '../../http/latin1.ts';
import { mergeReportedBills, parseReportedBill } from '../../http/reported-bill.ts';
import { EventTranslator } from '../../http/stream-relay.ts';
import {
  assertNotBlocked,
  type Candidate,
  type GenerateContentResponse,
  getResponseId,
  toCompletionEnd,
} from './chat-outcome.ts';
import { type OutputPart, readParts } from './chat-parts.ts';
import { type CompletionOptions, getGeneratedText } from './chat-response.ts';
import { parseGeminiUsage } from './chat-usage.ts';
import { toSignatureDetail } from './thought-signatures.ts';

/** Errors within a stream that have their own code. All others are reported as `upstream_error`. */
const STREAM_ERRORS: ReadonlyMap<unknown, readonly [FailureCode, string]> = new Map([
  [429, ['rate_limited', MESSAGE_RATE_LIMITED]],
  [504, ['timeout', MESSAGE_TIMEOUT]],
]);

export class GeminiEventTranslator extends EventTranslator {
  /** The start of each chunk, in Latin-1. */
  private readonly head: string;
  private hasSentRole = false;
  private reportedUsage: Usage | undefined;
  private bill: ReportedBill = {};
  private upstreamId: string | undefined;
  private deliveredText = '';
  /** Length of the reasoning in `deliveredText` that the client does not get. */
  private hiddenLength = 0;
  private deliveredBytes = 0;
  private callCount = 0;
  private signatureCount = 0;

  constructor(
    { id, model, provider, created }: CompletionIdentity,
    private readonly options: CompletionOptions,
    private readonly classifyError: ClassifyError,
  ) {
    super();
    const chunk = { id, object: 'chat.completion.chunk', created, model, provider };
    this.head = `${toLatin1Json(chunk).slice(0, -1)},"choices":[{"index":0,"delta":`;
  }

  /** Undefined before the end, because the counts of earlier events are preliminary. */
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
    return this.deliveredText;
  }

  getMaxGeneratedTokens(): number {
    return this.deliveredBytes;
  }

  hasForwarded(): boolean {
    return this.deliveredText.length > this.hiddenLength;
  }

  protected translateEvent(json: string): string {
    const event = parseLatin1Event(json) as GenerateContentResponse;
    this.upstreamId ??= getResponseId(event);
    this.bill = mergeReportedBills(this.bill, parseReportedBill(event, this.options.billFormat));
    if (event.error !== undefined) throw this.toStreamError(event);
    const [candidate] = event.candidates ?? [];
    const isLast = typeof candidate?.finishReason === 'string';
    if (isLast || this.hasFinishReason || event.promptFeedback?.blockReason)
      this.reportedUsage = parseGeminiUsage(event.usageMetadata) ?? this.reportedUsage;
    assertNotBlocked(event, this.reportedUsage);
    const chunks = readParts(event).map((part) => this.handlePart(part));
    chunks.push(this.handleMetadata(event));
    if (candidate && isLast) chunks.push(this.finish(candidate, event));
    return chunks.join('');
  }

  /** Returns what is forwarded for a part. */
  protected handlePart(part: OutputPart): string {
    const text = getGeneratedText(part);
    this.deliveredText += text;
    this.deliveredBytes += Buffer.byteLength(text);
    if (part.kind === 'text') return this.formatChunk({ content: part.text });
    if (part.kind === 'call') return this.handleCall(part);
    if (!this.options.withoutReasoning) return this.formatChunk({ reasoning: part.text });
    this.hiddenLength += text.length;
    return '';
  }

  /** Returns what is forwarded for the metadata of an event, after its parts: here nothing. */
  protected handleMetadata(_: GenerateContentResponse): string {
    return '';
  }

  /** Gemini sends a call at once. */
  private handleCall({ call, signature }: Extract<OutputPart, { kind: 'call' }>): string {
    const { model, withoutReasoning } = this.options;
    const details =
      signature === undefined || withoutReasoning
        ? {}
        : { reasoning_details: [toSignatureDetail(this.signatureCount++, call, signature, model)] };
    return this.formatChunk({ ...details, tool_calls: [{ index: this.callCount++, ...call }] });
  }

  /** Returns the last chunk. @throws UpstreamError under the conditions of `toCompletionEnd` */
  protected finish(candidate: Candidate, event: GenerateContentResponse): string {
    const { finish_reason, ...fields } = toCompletionEnd(candidate, event, {
      hasOutput: this.deliveredText !== '',
      hasCalls: this.callCount > 0,
      usage: this.reportedUsage,
    });
    this.hasFinishReason = true;
    const rest = Object.keys(fields).length === 0 ? '' : `,${toLatin1Json(fields).slice(1, -1)}`;
    const explanation = fields.stop_details?.explanation ?? undefined;
    return this.formatChunk({ refusal: explanation }, `"${finish_reason}"${rest}`);
  }

  /**
   * Sends the role only together with the first other chunk, so that nothing was forwarded if the provider fails before
   * that chunk.
   */
  protected formatChunk(delta: JsonObject, finish = 'null'): string {
    const role = this.hasSentRole ? {} : { role: 'assistant', content: '' };
    this.hasSentRole = true;
    return formatSseEvent(`${this.head}${toLatin1Json({ ...role, ...delta })},"finish_reason":${finish}}]}`);
  }

  private toStreamError(event: GenerateContentResponse): UpstreamError {
    const report = toErrorReport(event);
    const failure = this.classifyError(report);
    if (failure) return failure;
    const [code, message] = STREAM_ERRORS.get(report.status) ?? [
      'upstream_error',
      'The provider ended the response early',
    ];
    return new UpstreamError(code, message);
  }
}
