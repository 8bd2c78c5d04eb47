/** Models that are not priced by tokens, in the format of the data files: images, videos, speech and transcription. */
import { z } from 'zod';
import { amount, count, listSchema, mapSchema, text, texts } from './field-schemas.ts';
import { baseEndpoint, baseModel, type ModelFile } from './model-file.ts';
import type { ReportProblem, Valid } from './validation.ts';

/** Units of prices. A clip is a complete video of any length. */
export const MEDIA_UNITS = ['image', 'second', 'clip', 'minute', '1k_characters'] as const;
export type MediaUnit = (typeof MEDIA_UNITS)[number];

/** Options that a request may choose and that a price may depend on. */
export const MEDIA_CHOICES = ['quality', 'resolution', 'size', 'duration', 'language'] as const;
export type MediaChoice = (typeof MEDIA_CHOICES)[number];
export type MediaChoices = Readonly<Partial<Record<MediaChoice, string>>>;

/** Capabilities by model type. The API returns them as badges. */
export const MEDIA_CAPABILITIES = {
  image: ['text_to_image', 'edit', 'upscale', 'background_removal', 'requires_image'],
  video: ['text_to_video', 'image_to_video', 'requires_image'],
  audio: ['speech_to_text', 'text_to_speech'],
} as const;

export type MediaType = keyof typeof MEDIA_CAPABILITIES;

const unitPrice = z.strictObject({
  unit: z.enum(MEDIA_UNITS),
  usd: amount.describe('USD per unit if no variant matches.'),
  variants: listSchema(z.strictObject({ when: z.partialRecord(z.enum(MEDIA_CHOICES), text), usd: amount }))
    .optional()
    .describe('Prices that depend on parameters; the first variant whose parameters all match applies.'),
});

/** Token units by which providers may bill image models: text and image tokens, input and output. */
export const BILLED_TOKEN_UNITS = ['input', 'imageInput', 'output', 'imageOutput'] as const;

const SCALAR = 'must be a string, a number or a boolean';
const wireFields = mapSchema(z.union([z.string(SCALAR), z.number(SCALAR), z.boolean(SCALAR)]));

/** How choices are sent to a provider whose names or values differ from those of the gateway. */
const wireMapping = z.strictObject({
  names: mapSchema(text)
    .optional()
    .describe("The provider's parameter name for each of the gateway's names that differs."),
  words: mapSchema(mapSchema(text))
    .optional()
    .describe(
      "The provider's values by our parameter and value. If a parameter is listed, its other values are not sent.",
    ),
  always: wireFields.optional().describe('Fields sent with every request, for example because they change the price.'),
  withImage: z
    .strictObject({ model: text.optional(), always: wireFields.optional() })
    .optional()
    .describe(
      "Differences for requests with an image: the provider's model name, and fields sent with all such requests.",
    ),
});
export type WireMapping = Valid<typeof wireMapping>;

const imageEndpoint = baseEndpoint.extend({
  usdPerUnit: unitPrice,
  usdPerMillionTokens: z
    .partialRecord(z.enum(BILLED_TOKEN_UNITS), amount)
    .optional()
    .describe(
      "Token prices that the provider invoices instead of `usdPerUnit`, which then only determines the customer's " +
        'price.',
    ),
  imagesPerCall: count.optional().describe('Maximum number of images per call.'),
  wire: wireMapping.optional(),
});
export type MediaEndpointFile = Valid<typeof imageEndpoint>;

const mediaEndpoint = imageEndpoint.omit({ usdPerMillionTokens: true, imagesPerCall: true });

const mediaModel = baseModel.extend({
  type: z.enum(['image', 'video', 'audio']),
  outputs: texts,
  capabilities: texts,
  choices: z
    .partialRecord(z.enum(MEDIA_CHOICES), texts)
    .optional()
    .describe('Values that a request may choose; the first one is the default.'),
  maxImages: count.optional().describe('Maximum number of images per request.'),
  maxPrompt: count.optional().describe('Maximum number of characters of a prompt.'),
  deadlineMinutes: count.optional().describe('Maximum time for a video before its job fails.'),
  maxCharacters: count.optional().describe('Maximum number of characters of the text of a text-to-speech request.'),
  endpoints: listSchema(imageEndpoint),
});

/** A model that is priced by media units. */
export type MediaModelFile = Valid<typeof mediaModel>;
export type AnyModelFile = ModelFile | MediaModelFile;

export const imageModel = mediaModel.omit({ deadlineMinutes: true, maxCharacters: true }).extend({
  type: z.literal('image'),
  capabilities: listSchema(z.enum(MEDIA_CAPABILITIES.image)),
  maxImages: count,
  endpoints: listSchema(
    imageEndpoint.extend({ usdPerUnit: unitPrice.extend({ unit: z.enum(['image']) }), imagesPerCall: count }),
  ),
});

export const videoModel = mediaModel.omit({ maxImages: true, maxCharacters: true }).extend({
  type: z.literal('video'),
  capabilities: listSchema(z.enum(MEDIA_CAPABILITIES.video)),
  endpoints: listSchema(mediaEndpoint.extend({ usdPerUnit: unitPrice.extend({ unit: z.enum(['second', 'clip']) }) })),
});

export const audioModel = mediaModel.omit({ maxImages: true, maxPrompt: true, deadlineMinutes: true }).extend({
  type: z.literal('audio'),
  capabilities: listSchema(z.enum(MEDIA_CAPABILITIES.audio)),
  endpoints: listSchema(
    mediaEndpoint.extend({ usdPerUnit: unitPrice.extend({ unit: z.enum(['minute', '1k_characters']) }) }),
  ),
});

/** Checks the rules that concern several fields of a model. */
export function checkMediaModel(model: MediaModelFile, report: ReportProblem): void {
  const { id, type, capabilities, choices = {} } = model;
  if (type === 'video') {
    if (!choices.duration) report('must be a non-empty list', 'choices', 'duration');
    if (id.endsWith('-i2v') !== capabilities.includes('requires_image'))
      report('must have requires_image if and only if the id ends with -i2v', 'capabilities');
  }
  const isTextToSpeech = capabilities.includes('text_to_speech');
  if (type === 'audio' && isTextToSpeech === capabilities.includes('speech_to_text'))
    report('must be speech_to_text or text_to_speech', 'capabilities');
  if (isTextToSpeech !== (model.maxCharacters !== undefined))
    report('is required for text_to_speech and not allowed otherwise', 'maxCharacters');
  if (type !== 'audio') checkImageModel(model, report);
  checkMediaEndpoints(model, isTextToSpeech ? '1k_characters' : 'minute', report);
}

/** @param audioUnit of audio models */
function checkMediaEndpoints(
  { type, choices = {}, endpoints }: MediaModelFile,
  audioUnit: MediaUnit,
  report: ReportProblem,
): void {
  for (const [i, { usdPerUnit, wire }] of endpoints.entries()) {
    for (const [choice, words] of Object.entries(wire?.words ?? {}))
      for (const value of choices[choice as MediaChoice] ?? [])
        if (!Object.hasOwn(words, value))
          report(`must have a value for ${value}`, 'endpoints', i, 'wire', 'words', choice);
    if (type === 'audio' && usdPerUnit.unit !== audioUnit)
      report(`must be ${audioUnit}`, 'endpoints', i, 'usdPerUnit', 'unit');
    for (const [v, { when }] of (usdPerUnit.variants ?? []).entries()) {
      const path = ['endpoints', i, 'usdPerUnit', 'variants', v, 'when'];
      if (Object.keys(when).length === 0) report('must name a choice', ...path);
      for (const [choice, value] of Object.entries(when))
        if (!choices[choice as MediaChoice]?.includes(value))
          report(`must be one of the choices of ${choice}`, ...path, choice);
    }
  }
}

const RATIO = /^[1-9]\d?:[1-9]\d?$/;

/**
 * Checks the sizes, and requires the same price at every endpoint, so that the published price does not depend on
 * routing.
 */
function checkImageModel({ choices = {}, endpoints }: MediaModelFile, report: ReportProblem): void {
  if (choices.size?.some((size) => !RATIO.test(size))) report('must be ratios, such as 16:9', 'choices', 'size');
  const prices = endpoints.map(({ usdPerUnit, margin }) => JSON.stringify([usdPerUnit, margin]));
  const other = prices.findIndex((price) => price !== prices[0]);
  if (other > 0)
    report('must be the same for all endpoints of the model, and so must the margin', 'endpoints', other, 'usdPerUnit');
}
