/** Image generation with Gemini, one image per call: https://ai.google.dev/gemini-api/docs/image-generation */
import { type GeneratedImages, type ImageCall, UpstreamError } from '#application';
import type { Usage } from '#domain';
import { MESSAGE_CONTENT_POLICY } from '../../http/error-rules.ts';
import { Base64File } from '../../http/json-with-files.ts';
import { parseProviderRequestId, parseTokenCount } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import { toProviderParameters } from '../provider-parameters.ts';
import { toGoogleError } from './errors.ts';

const DEFAULT_NAMES = { size: 'aspectRatio', resolution: 'imageSize' };

/** Finish reasons that concern the content of the request or of the result. */
const AGAINST_POLICY: ReadonlySet<unknown> = new Set([
  'SAFETY',
  'PROHIBITED_CONTENT',
  'BLOCKLIST',
  'SPII',
  'RECITATION',
  'OTHER',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
]);

export class GeminiImages {
  constructor(
    private readonly http: ProviderHttp,
    private readonly headers: Readonly<Record<string, string>>,
  ) {}

  async generate({ model, prompt, images, parameters, wireMapping, signal }: ImageCall): Promise<GeneratedImages> {
    const imageConfig = toProviderParameters(parameters, wireMapping, {
      defaultNames: DEFAULT_NAMES,
      bringsImage: images.length > 0,
    });
    const response = await this.http.request(`/v1beta/models/${encodeURIComponent(model)}:generateContent`, {
      method: 'POST',
      headers: this.headers,
      body: {
        contents: [{ role: 'user', parts: [{ text: prompt }, ...images.map(toInlineData)] }],
        generationConfig: { responseModalities: ['IMAGE'], imageConfig },
      },
      signal,
      isBilledAfterDisconnect: true,
      mapErrorResponse: toGoogleError,
    });
    return toGeneratedImages((await response.json()) as GeminiResponse | null);
  }
}

function toInlineData(image: Blob) {
  return { inlineData: { mimeType: image.type, data: new Base64File(image) } };
}

interface Part {
  /** True for a draft that is not part of the result. */
  readonly thought?: unknown;
  readonly inlineData?: { readonly data?: unknown } | null;
}

interface GeminiResponse {
  readonly responseId?: unknown;
  readonly candidates?: readonly {
    readonly finishReason?: unknown;
    readonly content?: { readonly parts?: readonly (Part | null)[] } | null;
  }[];
  readonly promptFeedback?: { readonly blockReason?: unknown } | null;
  readonly usageMetadata?: GeminiUsage | null;
}

function toGeneratedImages(response: GeminiResponse | null): GeneratedImages {
  const [candidate] = response?.candidates ?? [];
  const files = (candidate?.content?.parts ?? []).flatMap((part) => {
    const data = part?.thought === true ? undefined : part?.inlineData?.data;
    return typeof data === 'string' ? [{ kind: 'bytes' as const, bytes: Buffer.from(data, 'base64') }] : [];
  });
  const usage = parseUsage(response?.usageMetadata);
  const providerRequestId = parseProviderRequestId({ id: response?.responseId });
  if (files.length > 0) return { files, usage, vendorId: providerRequestId };
  const details = { usage, vendorId: providerRequestId };
  const blocked = response?.promptFeedback?.blockReason !== undefined;
  if (blocked || AGAINST_POLICY.has(candidate?.finishReason))
    throw new UpstreamError('content_policy_violation', MESSAGE_CONTENT_POLICY, details);
  throw new UpstreamError('upstream_error', 'The provider responded without an image', {
    ...details,
    deliveredText: '',
  });
}

interface GeminiUsage {
  readonly promptTokenCount?: unknown;
  readonly candidatesTokenCount?: unknown;
  readonly thoughtsTokenCount?: unknown;
  readonly promptTokensDetails?: unknown;
  readonly candidatesTokensDetails?: unknown;
}

/**
 * `candidatesTokenCount` does not include reasoning tokens, which are billed as text output. Gemini omits the count if
 * it is zero.
 */
function parseUsage(usage: GeminiUsage | null | undefined): Usage | undefined {
  const prompt = parseTokenCount(usage?.promptTokenCount);
  if (usage === null || usage === undefined || prompt === undefined) return undefined;
  const candidates = parseTokenCount(usage.candidatesTokenCount) ?? 0;
  const imageInput = Math.min(countImageTokens(usage.promptTokensDetails) ?? 0, prompt);
  const imageOutput = Math.min(countImageTokens(usage.candidatesTokensDetails) ?? candidates, candidates);
  const thoughts = parseTokenCount(usage.thoughtsTokenCount) ?? 0;
  return { input: prompt - imageInput, imageInput, output: candidates - imageOutput + thoughts, imageOutput };
}

function countImageTokens(details: unknown): number | undefined {
  if (!Array.isArray(details)) return undefined;
  return details.reduce(
    (sum, detail) => sum + (detail?.modality === 'IMAGE' ? (parseTokenCount(detail.tokenCount) ?? 0) : 0),
    0,
  );
}
