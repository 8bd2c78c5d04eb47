/** Image generation with OpenAI's protocol: https://platform.openai.com/docs/api-reference/images */
import { FormData } from 'undici';
import {
  type GeneratedFile,
  type GeneratedImages,
  type ImageCall,
  type ImageProperties,
  UpstreamError,
} from '#application';
import type { Usage } from '#domain';
import { toUpstreamErrorFromResponse } from '../../http/json-http-client.ts';
import { parseProviderRequestId, parseTokenCount } from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import type { ProviderHttpResponse } from '../../http/provider-request.ts';
import { toProviderParameters } from '../provider-parameters.ts';

/** OpenAI calls any generation from an input image an edit. */
export class OpenAiImages {
  constructor(
    private readonly http: ProviderHttp,
    private readonly headers: Readonly<Record<string, string>>,
  ) {}

  async generate(call: ImageCall): Promise<GeneratedImages> {
    const { model, prompt, count, images, parameters, wireMapping, signal } = call;
    const bringsImage = images.length > 0;
    const params = { model, prompt, n: count, ...toProviderParameters(parameters, wireMapping, { bringsImage }) };
    const response = await this.http.request(bringsImage ? '/images/edits' : '/images/generations', {
      method: 'POST',
      headers: this.headers,
      body: bringsImage ? toFormData(params, call) : params,
      signal,
      mapErrorResponse: toUpstreamErrorFromResponse,
    });
    return toGeneratedImages(await response.json(), response);
  }
}

function toFormData(
  params: Readonly<Record<string, string | number | boolean>>,
  { images, mask }: ImageCall,
): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(params)) form.set(name, String(value));
  for (const [i, image] of images.entries()) form.append('image[]', image, formatFileName(`image-${i}`, image));
  if (mask) form.set('mask', mask, formatFileName('mask', mask));
  return form;
}

function formatFileName(name: string, { type }: Blob): string {
  return `${name}.${type.replace('image/', '')}`;
}

interface ImagesResponse {
  readonly id?: unknown;
  readonly data?: unknown;
  readonly usage?: unknown;
  readonly size?: unknown;
  readonly quality?: unknown;
  readonly background?: unknown;
}

function toGeneratedImages(body: unknown, { headers, status }: ProviderHttpResponse): GeneratedImages {
  const response = (body ?? {}) as ImagesResponse;
  const data: readonly unknown[] = Array.isArray(response.data) ? response.data : [];
  const files = data.flatMap(toFiles);
  const providerRequestId = parseProviderRequestId(response) ?? parseProviderRequestId({ id: headers['x-request-id'] });
  const usage = parseUsage(response.usage);
  if (files.length > 0) return { files, usage, vendorId: providerRequestId, properties: parseProperties(response) };
  const details = { status, usage, vendorId: providerRequestId, deliveredText: '' };
  throw new UpstreamError('upstream_error', 'The provider responded without an image', details);
}

const PROPERTY = /^\w{1,32}$/;

/** DeepInfra's responses have none of the properties. */
function parseProperties(response: ImagesResponse): ImageProperties {
  const reported = (['size', 'quality', 'background'] as const).flatMap((name) => {
    const value = response[name];
    return typeof value === 'string' && PROPERTY.test(value) ? [[name, value]] : [];
  });
  return Object.fromEntries(reported);
}

function toFiles(entry: unknown): readonly GeneratedFile[] {
  const { b64_json: base64, url } = (entry ?? {}) as { readonly b64_json?: unknown; readonly url?: unknown };
  if (typeof base64 === 'string' && base64 !== '') return [{ kind: 'bytes', bytes: Buffer.from(base64, 'base64') }];
  return typeof url === 'string' ? [{ kind: 'address', url }] : [];
}

interface ReportedUsage {
  readonly input_tokens?: unknown;
  readonly output_tokens?: unknown;
  readonly input_tokens_details?: { readonly image_tokens?: unknown } | null;
  readonly output_tokens_details?: { readonly text_tokens?: unknown } | null;
}

/** Text and image tokens have different prices, for input and output. */
function parseUsage(reported: unknown): Usage | undefined {
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = (reported ??
    {}) as ReportedUsage;
  const [input, output] = [parseTokenCount(input_tokens), parseTokenCount(output_tokens)];
  if (input === undefined || output === undefined) return undefined;
  const imageInput = Math.min(parseTokenCount(input_tokens_details?.image_tokens) ?? 0, input);
  const texts = Math.min(parseTokenCount(output_tokens_details?.text_tokens) ?? 0, output);
  return { input: input - imageInput, imageInput, output: texts, imageOutput: output - texts };
}
