/** Models that are not paid by tokens, as they stand in a data file: images, videos, and audio in both directions. */
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

/** What a price is for. A clip is a whole video, whatever its length. */
export const MEDIA_UNITS = ['image', 'second', 'clip', 'minute', '1k_characters'] as const;
export type MediaUnit = (typeof MEDIA_UNITS)[number];

/** What a request may choose, and what a price may depend on. */
export const MEDIA_CHOICES = ['quality', 'resolution', 'size', 'duration', 'language'] as const;
export type MediaChoice = (typeof MEDIA_CHOICES)[number];
export type MediaChoices = Readonly<Partial<Record<MediaChoice, string>>>;

/** What a model can do; the wire shows it as badges. */
export const MEDIA_CAPABILITIES = {
  image: ['text_to_image', 'edit', 'upscale', 'background_removal', 'requires_image'],
  video: ['text_to_video', 'image_to_video', 'requires_image'],
  audio: ['speech_to_text', 'text_to_speech'],
} as const;

export type MediaType = keyof typeof MEDIA_CAPABILITIES;

export interface UnitPriceFile {
  readonly unit: MediaUnit;
  /** USD for one, where no variant fits. */
  readonly usd: string;
  /** Prices that depend on parameters; the first variant whose parameters all match applies. */
  readonly variants?: readonly { readonly when: MediaChoices; readonly usd: string }[];
}

/** What of an image model can be billed by tokens: texts and pictures in both directions. */
export const BILLED_TOKEN_UNITS = ['input', 'imageInput', 'output', 'imageOutput'] as const;

/** How a vendor is told what was chosen, where that differs from our names and words. */
export interface WireMapping {
  /** Its names of our parameters. */
  readonly names?: Readonly<Record<string, string>>;
  /** Its words for ours, by our parameter; what has none there is not sent. */
  readonly words?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** What is sent with every request, such as what would change its price. */
  readonly always?: WireFields;
  /** What differs for requests that bring a picture: its name of the model, and what is sent with all of these. */
  readonly withImage?: { readonly model?: string; readonly always?: WireFields };
}

type WireFields = Readonly<Record<string, string | number | boolean>>;

export interface MediaEndpointFile extends OfferFile {
  readonly usdPerUnit: UnitPriceFile;
  /** What the vendor bills in place of the unit, which then is only what is sold. */
  readonly usdPerMillionTokens?: Readonly<Partial<Record<(typeof BILLED_TOKEN_UNITS)[number], string>>>;
  /** Images that one call makes at most. */
  readonly imagesPerCall?: number;
  readonly wire?: WireMapping;
}

export interface MediaModelFile extends BaseModelFile {
  readonly type: MediaType;
  readonly outputs: readonly string[];
  readonly capabilities: readonly string[];
  /** Words that a request may choose from; the first is what it gets when it chooses none. */
  readonly choices?: Readonly<Partial<Record<MediaChoice, readonly string[]>>>;
  /** Images of one request at most. */
  readonly maxImages?: number;
  /** Characters of a prompt at most. */
  readonly maxPrompt?: number;
  /** How long a video may take before it is given up. */
  readonly deadlineMinutes?: number;
  /** Characters of one text at most. */
  readonly maxCharacters?: number;
  readonly endpoints: readonly MediaEndpointFile[];
}

const toChoiceRules = <T>(rule: T) => Object.fromEntries(MEDIA_CHOICES.map((choice) => [choice, rule]));

const scalar = predicateRule('a text, a number, true or false', (it) =>
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
 * Checks across fields.
 * @throws DataFileError
 */
export function assertConsistentMediaModel(model: MediaModelFile, location: FieldLocation): void {
  const { id, type, capabilities, choices = {}, endpoints } = model;
  if (type === 'video') {
    if (!choices.duration)
      throw createDataFileError(withParent(location, 'choices', 'duration'), 'must be a list with something in it');
    if (id.endsWith('-i2v') !== capabilities.includes('requires_image'))
      throw createDataFileError(
        withParent(location, 'capabilities'),
        'must have requires_image exactly where the id ends with -i2v',
      );
  }
  const isTextToSpeech = capabilities.includes('text_to_speech');
  if (type === 'audio' && isTextToSpeech === capabilities.includes('speech_to_text'))
    throw createDataFileError(withParent(location, 'capabilities'), 'must be speech_to_text or text_to_speech');
  if (isTextToSpeech !== (model.maxCharacters !== undefined))
    throw createDataFileError(
      withParent(location, 'maxCharacters'),
      'must be there for text_to_speech, and only for it',
    );
  if (type !== 'audio') assertConsistentImageModel(model, location);
  for (const [i, { usdPerUnit, wire }] of endpoints.entries()) {
    for (const [choice, words] of Object.entries(wire?.words ?? {}))
      for (const value of choices[choice as MediaChoice] ?? [])
        if (!Object.hasOwn(words, value))
          throw createDataFileError(
            withParent(location, 'endpoints', i, 'wire', 'words', choice),
            `must have a word for ${value}`,
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

/** Whoever serves a request, its price is the one that is listed. */
function assertConsistentImageModel({ choices = {}, endpoints }: MediaModelFile, location: FieldLocation): void {
  if (choices.size?.some((size) => !RATIO.test(size)))
    throw createDataFileError(withParent(location, 'choices', 'size'), 'must be ratios, such as 16:9');
  const prices = endpoints.map(({ usdPerUnit, margin }) => JSON.stringify([usdPerUnit, margin]));
  const other = prices.findIndex((price) => price !== prices[0]);
  if (other > 0)
    throw createDataFileError(
      withParent(location, 'endpoints', other, 'usdPerUnit'),
      'must be the same for all endpoints of the model',
    );
}
