/** Models that are not priced by tokens, in the format of the data files: images, videos, speech and transcription. */
import { BASE_MODEL_RULES, type BaseModelFile, OFFER_RULES, type OfferFile } from './model-file.ts';
import {
  amount,
  count,
  createDataFileError,
  enumRule,
  type FieldLocation,
  listRule,
  mapRule,
  objectRule,
  optionalRule,
  predicateRule,
  text,
  texts,
  withParent,
} from './validation-rules.ts';

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

export interface UnitPriceFile {
  readonly unit: MediaUnit;
  /** USD per unit if no variant matches. */
  readonly usd: string;
  /** Prices that depend on parameters; the first variant whose parameters all match applies. */
  readonly variants?: readonly { readonly when: MediaChoices; readonly usd: string }[];
}

/** Token units by which providers may bill image models: text and image tokens, input and output. */
export const BILLED_TOKEN_UNITS = ['input', 'imageInput', 'output', 'imageOutput'] as const;

/** How choices are sent to a provider whose names or values differ from those of the gateway. */
export interface WireMapping {
  /** The provider's parameter name for each of the gateway's names that differs. */
  readonly names?: Readonly<Record<string, string>>;
  /** The provider's values by our parameter and value. If a parameter is listed, its other values are not sent. */
  readonly words?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Fields sent with every request, for example because they change the price. */
  readonly always?: WireFields;
  /** Differences for requests with an image: the provider's model name, and fields sent with all such requests. */
  readonly withImage?: { readonly model?: string; readonly always?: WireFields };
}

type WireFields = Readonly<Record<string, string | number | boolean>>;

export interface MediaEndpointFile extends OfferFile {
  readonly usdPerUnit: UnitPriceFile;
  /**
   * Token prices that the provider invoices instead of `usdPerUnit`, which then only determines the customer's price.
   */
  readonly usdPerMillionTokens?: Readonly<Partial<Record<(typeof BILLED_TOKEN_UNITS)[number], string>>>;
  /** Maximum number of images per call. */
  readonly imagesPerCall?: number;
  readonly wire?: WireMapping;
}

export interface MediaModelFile extends BaseModelFile {
  readonly type: MediaType;
  readonly outputs: readonly string[];
  readonly capabilities: readonly string[];
  /** Values that a request may choose; the first one is the default. */
  readonly choices?: Readonly<Partial<Record<MediaChoice, readonly string[]>>>;
  /** Maximum number of images per request. */
  readonly maxImages?: number;
  /** Maximum number of characters of a prompt. */
  readonly maxPrompt?: number;
  /** Maximum time for a video before its job fails. */
  readonly deadlineMinutes?: number;
  /** Maximum number of characters of the text of a text-to-speech request. */
  readonly maxCharacters?: number;
  readonly endpoints: readonly MediaEndpointFile[];
}

const toChoiceRules = <T>(rule: T) => Object.fromEntries(MEDIA_CHOICES.map((choice) => [choice, rule]));

const scalar = predicateRule('a string, a number or a boolean', (it) =>
  ['string', 'number', 'boolean'].includes(typeof it),
);
const wireMapping = objectRule({
  names: optionalRule(mapRule(text)),
  words: optionalRule(mapRule(mapRule(text))),
  always: optionalRule(mapRule(scalar)),
  withImage: optionalRule(objectRule({ model: optionalRule(text), always: optionalRule(mapRule(scalar)) })),
});

const createEndpointRule = (units: readonly MediaUnit[], extraFields: Parameters<typeof objectRule>[0]) =>
  objectRule({
    ...OFFER_RULES,
    ...extraFields,
    wire: optionalRule(wireMapping),
    usdPerUnit: objectRule({
      unit: enumRule(units),
      usd: amount,
      variants: optionalRule(
        listRule(objectRule({ when: objectRule(toChoiceRules(optionalRule(text))), usd: amount })),
      ),
    }),
  });

const createModelRule = (
  type: MediaType,
  units: readonly MediaUnit[],
  extraFields: Parameters<typeof objectRule>[0],
  extraEndpointFields: Parameters<typeof objectRule>[0] = {},
) =>
  objectRule({
    ...BASE_MODEL_RULES,
    outputs: texts,
    capabilities: listRule(enumRule(MEDIA_CAPABILITIES[type])),
    choices: optionalRule(objectRule(toChoiceRules(optionalRule(texts)))),
    endpoints: listRule(createEndpointRule(units, extraEndpointFields)),
    ...extraFields,
  });

const billedTokens = objectRule(Object.fromEntries(BILLED_TOKEN_UNITS.map((unit) => [unit, optionalRule(amount)])));

export const imageModel = createModelRule(
  'image',
  ['image'],
  { maxImages: count, maxPrompt: optionalRule(count) },
  { usdPerMillionTokens: optionalRule(billedTokens), imagesPerCall: count },
);
export const videoModel = createModelRule('video', ['second', 'clip'], {
  deadlineMinutes: optionalRule(count),
  maxPrompt: optionalRule(count),
});
export const audioModel = createModelRule('audio', ['minute', '1k_characters'], { maxCharacters: optionalRule(count) });

/**
 * Checks the rules that concern several fields of a model.
 * @throws DataFileError
 */
export function assertConsistentMediaModel(model: MediaModelFile, location: FieldLocation): void {
  const { id, type, capabilities, choices = {}, endpoints } = model;
  if (type === 'video') {
    if (!choices.duration)
      throw createDataFileError(withParent(location, 'choices', 'duration'), 'must be a non-empty list');
    if (id.endsWith('-i2v') !== capabilities.includes('requires_image'))
      throw createDataFileError(
        withParent(location, 'capabilities'),
        'must have requires_image if and only if the id ends with -i2v',
      );
  }
  const isTextToSpeech = capabilities.includes('text_to_speech');
  if (type === 'audio' && isTextToSpeech === capabilities.includes('speech_to_text'))
    throw createDataFileError(withParent(location, 'capabilities'), 'must be speech_to_text or text_to_speech');
  if (isTextToSpeech !== (model.maxCharacters !== undefined))
    throw createDataFileError(
      withParent(location, 'maxCharacters'),
      'is required for text_to_speech and not allowed otherwise',
    );
  if (type !== 'audio') assertConsistentImageModel(model, location);
  for (const [i, { usdPerUnit, wire }] of endpoints.entries()) {
    for (const [choice, words] of Object.entries(wire?.words ?? {}))
      for (const value of choices[choice as MediaChoice] ?? [])
        if (!Object.hasOwn(words, value))
          throw createDataFileError(
            withParent(location, 'endpoints', i, 'wire', 'words', choice),
            `must have a value for ${value}`,
          );
    const priced = withParent(location, 'endpoints', i, 'usdPerUnit');
    const unit = isTextToSpeech ? '1k_characters' : 'minute';
    if (type === 'audio' && usdPerUnit.unit !== unit)
      throw createDataFileError(withParent(priced, 'unit'), `must be ${unit}`);
    for (const [v, { when }] of (usdPerUnit.variants ?? []).entries()) {
      const whenLocation = withParent(priced, 'variants', v, 'when');
      if (Object.keys(when).length === 0) throw createDataFileError(whenLocation, 'must name a choice');
      for (const [choice, value] of Object.entries(when))
        if (!choices[choice as MediaChoice]?.includes(value))
          throw createDataFileError(withParent(whenLocation, choice), `must be one of the choices of ${choice}`);
    }
  }
}

const RATIO = /^[1-9]\d?:[1-9]\d?$/;

/**
 * Checks the sizes, and requires the same price at every endpoint, so that the published price does not depend on
 * routing.
 */
function assertConsistentImageModel({ choices = {}, endpoints }: MediaModelFile, location: FieldLocation): void {
  if (choices.size?.some((size) => !RATIO.test(size)))
    throw createDataFileError(withParent(location, 'choices', 'size'), 'must be ratios, such as 16:9');
  const prices = endpoints.map(({ usdPerUnit, margin }) => JSON.stringify([usdPerUnit, margin]));
  const other = prices.findIndex((price) => price !== prices[0]);
  if (other > 0)
    throw createDataFileError(
      withParent(location, 'endpoints', other, 'usdPerUnit'),
      'must be the same for all endpoints of the model, and so must the margin',
    );
}
