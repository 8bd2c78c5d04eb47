/** Models that are not paid by tokens, as they stand in a data file: images, videos, and audio in both directions. */
import { DESCRIBED, type DescribedFile, OFFER, type OfferFile } from './model-file.ts';
import { amount, count, listOf, mistakeAt, object, oneOf, optional, type Place, text, texts, within } from './rules.ts';

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

export interface MediaEndpointFile extends OfferFile {
  readonly usdPerUnit: UnitPriceFile;
}

export interface MediaModelFile extends DescribedFile {
  readonly type: MediaType;
  readonly outputs: readonly string[];
  readonly capabilities: readonly string[];
  /** Words that a request may choose from; the first is what it gets when it chooses none. */
  readonly choices?: Readonly<Partial<Record<Choice, readonly string[]>>>;
  /** Images of one request at most. */
  readonly maxImages?: number;
  /** Characters of one text at most. */
  readonly maxCharacters?: number;
  readonly endpoints: readonly MediaEndpointFile[];
}

const perChoice = <T>(rule: T) => Object.fromEntries(CHOICES.map((choice) => [choice, rule]));

const endpointPaidBy = (units: readonly MediaUnit[]) =>
  object({
    ...OFFER,
    usdPerUnit: object({
      unit: oneOf(units),
      usd: amount,
      variants: optional(listOf(object({ when: object(perChoice(optional(text))), usd: amount }))),
    }),
  });

const mediaModel = (type: MediaType, units: readonly MediaUnit[], more: Parameters<typeof object>[0]) =>
  object({
    ...DESCRIBED,
    outputs: texts,
    capabilities: listOf(oneOf(CAPABILITIES[type])),
    choices: optional(object(perChoice(optional(texts)))),
    endpoints: listOf(endpointPaidBy(units)),
    ...more,
  });

export const imageModel = mediaModel('image', ['image'], { maxImages: count });
export const videoModel = mediaModel('video', ['second', 'clip'], {});
export const audioModel = mediaModel('audio', ['minute', '1k_characters'], { maxCharacters: optional(count) });

/**
 * Checks across fields.
 * @throws DataFileError
 */
export function assertSensible(model: MediaModelFile, place: Place): void {
  const { id, type, capabilities, choices = {}, endpoints } = model;
  if (type === 'video') {
    if (!choices.duration) throw mistakeAt(within(place, 'choices', 'duration'), 'must be a list with something in it');
    if (id.endsWith('-i2v') !== capabilities.includes('requires_image'))
      throw mistakeAt(within(place, 'capabilities'), 'must have requires_image exactly where the id ends with -i2v');
  }
  const speaks = capabilities.includes('text_to_speech');
  if (type === 'audio' && speaks === capabilities.includes('speech_to_text'))
    throw mistakeAt(within(place, 'capabilities'), 'must be speech_to_text or text_to_speech');
  if (speaks !== (model.maxCharacters !== undefined))
    throw mistakeAt(within(place, 'maxCharacters'), 'must be there for text_to_speech, and only for it');
  for (const [i, { usdPerUnit }] of endpoints.entries()) {
    const priced = within(place, 'endpoints', i, 'usdPerUnit');
    const unit = speaks ? '1k_characters' : 'minute';
    if (type === 'audio' && usdPerUnit.unit !== unit) throw mistakeAt(within(priced, 'unit'), `must be ${unit}`);
    for (const [v, { when }] of (usdPerUnit.variants ?? []).entries()) {
      const named = within(priced, 'variants', v, 'when');
      if (Object.keys(when).length === 0) throw mistakeAt(named, 'must name a choice');
      for (const [choice, word] of Object.entries(when))
        if (!choices[choice as Choice]?.includes(word))
          throw mistakeAt(within(named, choice), `must be one of the choices of ${choice}`);
    }
  }
}
