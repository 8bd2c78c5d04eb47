/** Chat completions with Gemini: https://ai.google.dev/api/generate-content */
import type { ChatCall, Completion, CompletionStream } from '#application';
import { type FieldFilter, withFixedFields } from '../../http/field-filter.ts';
import type { JsonHttpClient } from '../../http/json-http-client.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import type { BillFormat } from '../../http/reported-bill.ts';
import { withReasoningLimit } from '../chat/reasoning-limit.ts';
import type { ProviderConfig } from '../provider.ts';
import { GeminiEventTranslator } from './chat-events.ts';
import { generateContentFilter } from './chat-filter.ts';
import { toGenerateContentRequest } from './chat-request.ts';
import { parseGeminiCompletion } from './chat-response.ts';
import { toGoogleError } from './errors.ts';
import { GeminiSearchTranslator } from './search-events.ts';

export class GeminiChat {
  /** By path: the URL contains the model. */
  private readonly endpoints = new Map<string, JsonHttpClient>();
  private readonly billFormat: BillFormat;
  private readonly fieldFilter: FieldFilter;

  constructor(
    private readonly http: ProviderHttp,
    private readonly headers: Readonly<Record<string, string>>,
    { bill = {}, always = {} }: Pick<ProviderConfig, 'bill' | 'always'>,
  ) {
    this.billFormat = bill;
    this.fieldFilter = withFixedFields(generateContentFilter, always);
  }

  async complete(call: ChatCall): Promise<Completion | CompletionStream> {
    const request = await toGenerateContentRequest(call.body, call.modelRules ?? {}, call.search);
    // A thinking level is no limit.
    return withReasoningLimit(call, this.send(call, request), undefined);
  }

  private async send(call: ChatCall, request: object): Promise<Completion | CompletionStream> {
    const { body, stream, withoutReasoning, identity, search, signal } = call;
    const model = String(body.model);
    const options = { model, withoutReasoning, billFormat: this.billFormat, hasSearched: search !== undefined };
    const parseCompletion = (text: string) => parseGeminiCompletion(text, identity, options);
    if (!stream) return parseCompletion(await this.getEndpoint(model, 'generateContent').post(request, signal));
    const endpoint = this.getEndpoint(model, 'streamGenerateContent?alt=sse');
    if (search === undefined) {
      const translator = new GeminiEventTranslator(identity, options, endpoint.classifyError);
      return endpoint.stream(request, signal, { translator, parseCompletion });
    }
    const translator = new GeminiSearchTranslator(identity, options, endpoint.classifyError);
    const response = await endpoint.stream(request, signal, { translator, parseCompletion });
    return { countInvoicedSearches: () => translator.invoiced, ...response };
  }

  private getEndpoint(model: string, method: string): JsonHttpClient {
    const path = `/v1beta/models/${encodeURIComponent(model)}:${method}`;
    let endpoint = this.endpoints.get(path);
    if (!endpoint) {
      const { headers, fieldFilter } = this;
      endpoint = this.http.createJsonClient(path, { headers, fieldFilter, mapErrorResponse: toGoogleError });
      this.endpoints.set(path, endpoint);
    }
    return endpoint;
  }
}
