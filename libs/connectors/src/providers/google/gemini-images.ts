/** Images of Gemini's models, one a call: https://ai.google.dev/gemini-api/docs/image-generation */
import { type GeneratedImages, type ImageCall, UpstreamError } from '#application';
import type { Usage } from '#domain';
import { MESSAGE_CONTENT_POLICY } from '../../http/json-http-client.ts';
import { Base64 } from '../../http/json-with-files.ts';
import { parseProviderRequestId, parseTokenCount } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import { toProviderParameters } from '../provider-parameters.ts';
import { googleRefusal } from './errors.ts';

const USUAL = { size: 'aspectRatio', resolution: 'imageSize' };

/** Reasons to stop that are about what was asked for, or came of it. */
const AGAINST_POLICY: ReadonlySet<unknown> = new Set([
  ...['SAFETY', 'PROHIBITED_CONTENT', 'BLOCKLIST', 'SPII', 'RECITATION', 'OTHER'],
  ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'IMAGE_RECITATION'],
]);

export class GeminiImages {
  constructor(
    private readonly http: ProviderHttp,
    private readonly headers: Readonly<Record<string, string>>,
  ) {}

  async make({ model, prompt, images, parameters, wireMapping: wire, signal }: ImageCall): Promise<GeneratedImages> {
    const imageConfig = toProviderParameters(parameters, wire, { usual: USUAL, bringsImage: images.length > 0 });
    const answer = await this.http.request(`/v1beta/models/${encodeURIComponent(model)}:generateContent`, {
      method: 'POST',
      headers: this.headers,
      body: {
        contents: [{ role: 'user', parts: [{ text: prompt }, ...images.map(inlineData)] }],
        generationConfig: { responseModalities: ['IMAGE'], imageConfig },
      },
      signal,
      billsOn: true,
      refusalOf: googleRefusal,
    });
    return madeIn((await answer.json()) as Answer | null);
  }
}

function inlineData(image: Blob) {
  return { inlineData: { mimeType: image.type, data: new Base64(image) } };
}

interface Part {
  /** It is a draft of the model's, on the way to its answer. */
  readonly thought?: unknown;
  readonly inlineData?: { readonly data?: unknown } | null;
}

interface Answer {
  readonly responseId?: unknown;
  readonly candidates?: readonly {
    readonly finishReason?: unknown;
    readonly content?: { readonly parts?: readonly (Part | null)[] } | null;
  }[];
  readonly promptFeedback?: { readonly blockReason?: unknown } | null;
  readonly usageMetadata?: Counted | null;
}

function madeIn(answer: Answer | null): GeneratedImages {
  const [candidate] = answer?.candidates ?? [];
  const files = (candidate?.content?.parts ?? []).flatMap((part) => {
    const data = part?.thought === true ? undefined : part?.inlineData?.data;
    return typeof data === 'string' ? [{ kind: 'bytes' as const, bytes: Buffer.from(data, 'base64') }] : [];
  });
  const usage = usageIn(answer?.usageMetadata);
  const vendorId = parseProviderRequestId({ id: answer?.responseId });
  if (files.length > 0) return { files, usage, vendorId };
  const more = { usage, vendorId };
  const blocked = answer?.promptFeedback?.blockReason !== undefined;
  if (blocked || AGAINST_POLICY.has(candidate?.finishReason))
    throw new UpstreamError('content_policy_violation', MESSAGE_CONTENT_POLICY, more);
  throw new UpstreamError('upstream_error', 'The upstream answered without an image', { ...more, deliveredText: '' });
}

interface Counted {
  readonly promptTokenCount?: unknown;
  readonly candidatesTokenCount?: unknown;
  readonly thoughtsTokenCount?: unknown;
  readonly promptTokensDetails?: unknown;
  readonly candidatesTokensDetails?: unknown;
}

/** Thoughts are beside the candidates, and are output as text is. Zero candidates are not mentioned. */
function usageIn(counted: Counted | null | undefined): Usage | undefined {
  const prompt = parseTokenCount(counted?.promptTokenCount);
  if (counted === null || counted === undefined || prompt === undefined) return undefined;
  const candidates = parseTokenCount(counted.candidatesTokenCount) ?? 0;
  const imageInput = Math.min(ofImages(counted.promptTokensDetails) ?? 0, prompt);
  const imageOutput = Math.min(ofImages(counted.candidatesTokensDetails) ?? candidates, candidates);
  const thoughts = parseTokenCount(counted.thoughtsTokenCount) ?? 0;
  return { input: prompt - imageInput, imageInput, output: candidates - imageOutput + thoughts, imageOutput };
}

function ofImages(details: unknown): number | undefined {
  if (!Array.isArray(details)) return undefined;
  return details.reduce(
    (sum, each) => sum + (each?.modality === 'IMAGE' ? (parseTokenCount(each.tokenCount) ?? 0) : 0),
    0,
  );
}
