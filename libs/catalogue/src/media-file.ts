/** Models that are not paid by tokens, as they stand in a data file: images, videos, and audio in both directions. */
import { DESCRIBED, type DescribedFile, OFFER, type OfferFile } from './model-file.ts';
import {
  amount,
  count,
  createDataFileError,
  enumRule,
  type FieldLocation,
  listRule,
  mapRule,
  object,
  optional,
  predicateRule,
  text,
  texts,
  withParent,
} from './validation-rules.ts';

/** What a price is for. A clip is a whole video, whatever its length. */
export const MEDIA_UNITS = ['image', 'second', 'clip', 'minute', '1k_characters'] as const;
export type MediaUnit = (typeof MEDIA_UNITS)[number];

/** What a request may choose, and what a price may depend on. */
export const CHOICES = ['quality', 'resolution', 'size', 'duration', 'language'] as const;
export type Choice = (typeof CHOICES)[number];
export type Choices = Readonly<Partial<Record<Choice, string>>>;

/** What a model can do; the wire shows it as badges. */
export const CAPABILITIES = {
  image: ['text_to_image', 'edit', 'upscale', 'background_removal', 'requires_image'],
  video: ['text_to_video', 'image_to_video', 'requires_image'],
  audio: ['speech_to_text', 'text_to_speech'],
} as const;

export type MediaType = keyof typeof CAPABILITIES;

export interface UnitPriceFile {
  readonly unit: MediaUnit;
  /** USD for one, where no variant fits. */
  readonly usd: string;
  /** Prices that depend on parameters; the first variant whose parameters all match applies. */
  readonly variants?: readonly { readonly when: Choices; readonly usd: string }[];
}

/** What of an image model can be billed by tokens: texts and pictures in both directions. */
export const BILLED_TOKENS = ['input', 'imageInput', 'output', 'imageOutput'] as const;

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
  readonly usdPerMillionTokens?: Readonly<Partial<Record<(typeof BILLED_TOKENS)[number], string>>>;
  /** Images that one call makes at most. */
  readonly imagesPerCall?: number;
  readonly wire?: WireMapping;
}

export interface MediaModelFile extends DescribedFile {
  readonly type: MediaType;
  readonly outputs: readonly string[];
  readonly capabilities: readonly string[];
  /** Words that a request may choose from; the first is what it gets when it chooses none. */
  readonly choices?: Readonly<Partial<Record<Choice, readonly string[]>>>;
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

const perChoice = <T>(rule: T) => Object.fromEntries(CHOICES.map((choice) => [choice, rule]));

const scalar = predicateRule('a text, a number, true or false', (it) =>
  ['string', 'number', 'boolean'].includes(typeof it),
);
const wire = object({
  names: optional(mapRule(text)),
  words: optional(mapRule(mapRule(text))),
  always: optional(mapRule(scalar)),
  withImage: optional(object({ model: optional(text), always: optional(mapRule(scalar)) })),
});

const endpointPaidBy = (units: readonly MediaUnit[], more: Parameters<typeof object>[0]) =>
  object({
    ...OFFER,
    ...more,
    wire: optional(wire),
    usdPerUnit: object({
      unit: enumRule(units),
      usd: amount,
      variants: optional(listRule(object({ when: object(perChoice(optional(text))), usd: amount }))),
    }),
  });

const mediaModel = (
  type: MediaType,
  units: readonly MediaUnit[],
  more: Parameters<typeof object>[0],
  ofEndpoints: Parameters<typeof object>[0] = {},
) =>
  object({
    ...DESCRIBED,
    outputs: texts,
    capabilities: listRule(enumRule(CAPABILITIES[type])),
    choices: optional(object(perChoice(optional(texts)))),
    endpoints: listRule(endpointPaidBy(units, ofEndpoints)),
    ...more,
  });

const billedTokens = object(Object.fromEntries(BILLED_TOKENS.map((unit) => [unit, optional(amount)])));

export const imageModel = mediaModel(
  'image',
  ['image'],
  { maxImages: count, maxPrompt: optional(count) },
  { usdPerMillionTokens: optional(billedTokens), imagesPerCall: count },
);
export const videoModel = mediaModel('video', ['second', 'clip'], {
  deadlineMinutes: optional(count),
  maxPrompt: optional(count),
});
export const audioModel = mediaModel('audio', ['minute', '1k_characters'], { maxCharacters: optional(count) });

/**
 * Checks across fields.
 * @throws DataFileError
 */
export function assertConsistentMediaModel(model: MediaModelFile, place: FieldLocation): void {
  const { id, type, capabilities, choices = {}, endpoints } = model;
  if (type === 'video') {
    if (!choices.duration)
      throw createDataFileError(withParent(place, 'choices', 'duration'), 'must be a list with something in it');
    if (id.endsWith('-i2v') !== capabilities.includes('requires_image'))
      throw createDataFileError(
        withParent(place, 'capabilities'),
        'must have requires_image exactly where the id ends with -i2v',
      );
  }
  const speaks = capabilities.includes('text_to_speech');
  if (type === 'audio' && speaks === capabilities.includes('speech_to_text'))
    throw createDataFileError(withParent(place, 'capabilities'), 'must be speech_to_text or text_to_speech');
  if (speaks !== (model.maxCharacters !== undefined))
    throw createDataFileError(withParent(place, 'maxCharacters'), 'must be there for text_to_speech, and only for it');
  if (type !== 'audio') assertSensiblePictures(model, place);
  for (const [i, { usdPerUnit, wire }] of endpoints.entries()) {
    for (const [choice, words] of Object.entries(wire?.words ?? {}))
      for (const word of choices[choice as Choice] ?? [])
        if (!Object.hasOwn(words, word))
          throw createDataFileError(
            withParent(place, 'endpoints', i, 'wire', 'words', choice),
            `must have a word for ${word}`,
          );
    const priced = withParent(place, 'endpoints', i, 'usdPerUnit');
    const unit = speaks ? '1k_characters' : 'minute';
    if (type === 'audio' && usdPerUnit.unit !== unit)
      throw createDataFileError(withParent(priced, 'unit'), `must be ${unit}`);
    for (const [v, { when }] of (usdPerUnit.variants ?? []).entries()) {
      const named = withParent(priced, 'variants', v, 'when');
      if (Object.keys(when).length === 0) throw createDataFileError(named, 'must name a choice');
      for (const [choice, word] of Object.entries(when))
        if (!choices[choice as Choice]?.includes(word))
          throw createDataFileError(withParent(named, choice), `must be one of the choices of ${choice}`);
    }
  }
}

const RATIO = /^[1-9]\d?:[1-9]\d?$/;

/** Whoever serves a request, its price is the one that is listed. */
function assertSensiblePictures({ choices = {}, endpoints }: MediaModelFile, place: FieldLocation): void {
  if (choices.size?.some((size) => !RATIO.test(size)))
    throw createDataFileError(withParent(place, 'choices', 'size'), 'must be ratios, such as 16:9');
  const prices = endpoints.map(({ usdPerUnit, margin }) => JSON.stringify([usdPerUnit, margin]));
  const other = prices.findIndex((each) => each !== prices[0]);
  if (other > 0)
    throw createDataFileError(
      withParent(place, 'endpoints', other, 'usdPerUnit'),
      'must be the same for all endpoints of the model',
    );
}
