/** `:generateContent` of Gemini's image models, billed by tokens: https://ai.google.dev/api/generate-content */
import { randomUUID } from 'node:crypto';
import type { PricedUnits, SandboxBill } from '../bill.ts';
import type { AppliedDirective, DirectiveRunner } from '../media/directive-runner.ts';
import { createImage } from '../media/files/images.ts';
import { applyFileFault, isBilled, sendResponse } from '../media/sandbox-file.ts';
import { getImageSize } from '../media/sizes.ts';
import type { Call } from '../router.ts';
import { type GeminiImageRequest, parseImageRequest } from './gemini-request.ts';
import type { ImageOffer } from './google-offers.ts';

const PER_PRICE = 1_000_000;
const CHARACTERS_PER_TOKEN = 4;
const CAPTION = 'Here is your picture.';
const SIDES: Readonly<Record<string, number>> = { '512': 512, '1K': 1_024, '2K': 2_048, '4K': 4_096 };

/** Responds with an image, or with the reason why there is none. */
export async function generateImage(
  call: Call,
  [model, imageOffer]: readonly [string, ImageOffer],
  bill: SandboxBill,
  directiveRunner: DirectiveRunner,
): Promise<void> {
  const request = parseImageRequest(await call.readText(), imageOffer);
  const applied = await directiveRunner.runDirective(call, request.text);
  if (!applied) return;
  const responseId = randomUUID();
  const outcome = createOutcome(applied, request);
  const counts = countTokens(request, imageOffer, outcome, applied);
  if (isBilled(applied.fault)) bill.chargeParts(responseId, model, toPricedUnits(counts, imageOffer), applied.fault);
  const usage = applied.fault === 'no_usage' ? {} : { usageMetadata: toUsageMetadata(counts) };
  sendResponse(call, { ...outcome.body, ...usage, modelVersion: model, responseId }, applied.fault);
}

interface GenerationOutcome {
  readonly body: object;
  readonly hasImage: boolean;
  /** The generated text. */
  readonly text: string;
}

/** `policy` rejects the prompt before anything is generated; `policy_billed` withholds the generated image. */
function createOutcome(
  applied: AppliedDirective,
  { text, ratio, size, includesText }: GeminiImageRequest,
): GenerationOutcome {
  const { fault } = applied;
  if (fault === 'policy')
    return { body: { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, hasImage: false, text: '' };
  if (fault === 'policy_billed') {
    const finishMessage = 'Unable to show the generated image. The image was filtered out.';
    return {
      body: { candidates: [{ finishReason: 'IMAGE_SAFETY', finishMessage, index: 0 }] },
      hasImage: true,
      text: '',
    };
  }
  const caption = includesText || fault === 'fewer' ? CAPTION : '';
  const [width, height] = getImageSize(ratio, SIDES[size]);
  const image = { type: 'image/png', bytes: createImage({ seed: text, width, height }) };
  const { type: mimeType, bytes } = applyFileFault(image, fault);
  const imagePart = { inlineData: { mimeType, data: bytes.toString('base64') } };
  const parts = [...(caption === '' ? [] : [{ text: caption }]), ...(fault === 'fewer' ? [] : [imagePart])];
  const finishReason = fault === 'fewer' ? 'NO_IMAGE' : 'STOP';
  return {
    body: { candidates: [{ content: { parts, role: 'model' }, finishReason, index: 0 }] },
    hasImage: fault !== 'fewer',
    text: caption,
  };
}

interface TokenCounts {
  readonly text: number;
  readonly imageInput: number;
  readonly textOutput: number;
  readonly imageOutput: number;
  readonly thoughts: number;
}

function countTokens(
  { text, images, size }: GeminiImageRequest,
  imageOffer: ImageOffer,
  outcome: GenerationOutcome,
  applied: AppliedDirective,
): TokenCounts {
  return {
    text: countTextTokens(text),
    imageInput: images * imageOffer.inputTokens,
    textOutput: countTextTokens(outcome.text),
    imageOutput: outcome.hasImage ? (imageOffer.tokens[size] ?? 0) : 0,
    thoughts: applied.directive.reasoning || imageOffer.thoughts,
  };
}

function countTextTokens(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

function toPricedUnits(
  { text, imageInput, textOutput, imageOutput, thoughts }: TokenCounts,
  { usd }: ImageOffer,
): readonly PricedUnits[] {
  const toUnits = (unit: string, quantity: number, price: string) => ({ unit, quantity, per: PER_PRICE, price });
  return [
    toUnits('input', text, usd.input),
    toUnits('imageInput', imageInput, usd.input),
    toUnits('output', textOutput + thoughts, usd.output),
    toUnits('imageOutput', imageOutput, usd.image),
  ];
}

/** Leaves out counts of zero, except those of the prompt and the total. */
function toUsageMetadata({ text, imageInput, textOutput, imageOutput, thoughts }: TokenCounts) {
  const prompt = text + imageInput;
  const candidates = textOutput + imageOutput;
  const details = (texts: number, images: number) => [
    ...(texts > 0 ? [{ modality: 'TEXT', tokenCount: texts }] : []),
    ...(images > 0 ? [{ modality: 'IMAGE', tokenCount: images }] : []),
  ];
  return {
    promptTokenCount: prompt,
    ...(candidates > 0
      ? { candidatesTokenCount: candidates, candidatesTokensDetails: details(textOutput, imageOutput) }
      : {}),
    totalTokenCount: prompt + candidates + thoughts,
    promptTokensDetails: details(text, imageInput),
    ...(thoughts > 0 ? { thoughtsTokenCount: thoughts } : {}),
  };
}
