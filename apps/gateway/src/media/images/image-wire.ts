/** Formats generated images as OpenAI does: https://developers.openai.com/api/reference/resources/images */
import { type DeliveredImage, type FileName, formatSseEvent, type GenerateImagesResult } from '#application';
import type { Usage } from '#domain';
import { toUsdJsonNumber } from '#kernel';

/** What an event has instead of a property that the provider does not report: its clients require a value. */
const UNKNOWN_PROPERTY = 'auto';

/**
 * Returns the result without the images that are stored: the value of their `b64_json` is empty.
 * @returns undefined unless all images with base64 text are stored
 */
export function toShortResult(
  result: GenerateImagesResult,
): { readonly result: GenerateImagesResult; readonly images: readonly FileName[] } | undefined {
  const sent = result.images.filter(({ bytes }) => bytes !== undefined);
  const images = sent.flatMap(({ file }) => file ?? []);
  if (sent.length === 0 || images.length < sent.length) return undefined;
  const emptied = result.images.map((image) => (image.bytes ? { ...image, bytes: new Uint8Array() } : image));
  return { result: { ...result, images: emptied }, images };
}

/** Returns the JSON of a response with all images. @param created in Unix seconds */
export function serializeImages(
  { model, images, charged, usage, properties }: GenerateImagesResult,
  created: number,
): string {
  return JSON.stringify({
    created,
    model,
    cost: toUsdJsonNumber(charged),
    data: images.map(toImageJson),
    ...(hasTokens(usage) ? { ...properties, output_format: getFormat(images[0]), usage: toUsageJson(usage) } : {}),
  });
}

/**
 * Returns an SSE event for each image. Partial images are not requested from providers. @param created_at in Unix
 * seconds
 */
export function formatImageEvents(
  { model, images, charged, usage, properties }: GenerateImagesResult,
  eventPrefix: 'image_generation' | 'image_edit',
  created_at: number,
): string {
  const type = `${eventPrefix}.completed`;
  const common = { type, created_at, model, cost: toUsdJsonNumber(charged) };
  const { size = UNKNOWN_PROPERTY, quality = UNKNOWN_PROPERTY, background = UNKNOWN_PROPERTY } = properties;
  const usageJson = toUsageJson(usage ?? {});
  return images
    .map((image) => {
      const described = { size, quality, background, output_format: getFormat(image), usage: usageJson };
      return formatSseEvent(JSON.stringify({ ...common, ...described, ...toImageJson(image) }), type);
    })
    .join('');
}

function toImageJson({ url, bytes, mediaType }: DeliveredImage) {
  return {
    ...(url === undefined ? {} : { url }),
    ...(bytes === undefined ? {} : { b64_json: Buffer.from(bytes).toString('base64') }),
    content_type: mediaType,
  };
}

function getFormat(image: Pick<DeliveredImage, 'mediaType'> | undefined): string | undefined {
  return image?.mediaType.slice('image/'.length);
}

/** Providers that bill by the image report a number of images, or nothing. */
function hasTokens(usage: Usage | undefined): usage is Usage {
  return usage?.imageOutput !== undefined;
}

function toUsageJson({ input = 0, imageInput = 0, output = 0, imageOutput = 0 }: Usage) {
  return {
    input_tokens: input + imageInput,
    input_tokens_details: { text_tokens: input, image_tokens: imageInput },
    output_tokens: output + imageOutput,
    output_tokens_details: { text_tokens: output, image_tokens: imageOutput },
    total_tokens: input + imageInput + output + imageOutput,
  };
}
