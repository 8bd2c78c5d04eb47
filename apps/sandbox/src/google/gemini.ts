/** `:generateContent` of Gemini's models that draw, billed by tokens: https://ai.google.dev/api/generate-content */
import { randomUUID } from 'node:crypto';
import type { PricedUnits, SandboxBill } from '../bill.ts';
import { picture } from '../media/files/images.ts';
import type { AppliedDirective, Instructions } from '../media/instructions.ts';
import { isBilled, sendAnswer, spoilt } from '../media/sandbox-file.ts';
import { ratioOf } from '../media/sizes.ts';
import type { Call } from '../router.ts';
import { type DrawingRequest, drawingIn } from './gemini-request.ts';
import type { ImageOffer } from './google-offers.ts';

const PER_PRICE = 1_000_000;
const CHARACTERS_PER_TOKEN = 4;
const SAYS = 'Here is your picture.';
const SIDES: Readonly<Record<string, number>> = { '512': 512, '1K': 1_024, '2K': 2_048, '4K': 4_096 };

/** Answers with a picture, or says why there is none. */
export async function draw(
  call: Call,
  [model, offer]: readonly [string, ImageOffer],
  bill: SandboxBill,
  instructions: Instructions,
): Promise<void> {
  const asked = drawingIn(await call.text(), offer);
  const told = await instructions.follow(call, asked.text);
  if (!told) return;
  const responseId = randomUUID();
  const outcome = outcomeOf(told, asked);
  const counted = countedOf(asked, offer, outcome, told);
  if (isBilled(told.fault)) bill.chargeParts(responseId, model, pricedAs(counted, offer), told.fault);
  const usage = told.fault === 'no_usage' ? {} : { usageMetadata: usageOf(counted) };
  sendAnswer(call, { ...outcome.told, ...usage, modelVersion: model, responseId }, told.fault);
}

interface Outcome {
  readonly told: object;
  readonly draws: boolean;
  /** What it says. */
  readonly text: string;
}

/** A prompt that is forbidden is refused before anything is made; what is made of others may be withheld. */
function outcomeOf(told: AppliedDirective, { text, ratio, size, speaks }: DrawingRequest): Outcome {
  const { fault } = told;
  if (fault === 'policy')
    return { told: { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, draws: false, text: '' };
  if (fault === 'policy_billed') {
    const finishMessage = 'Unable to show the generated image. The image was filtered out.';
    return { told: { candidates: [{ finishReason: 'IMAGE_SAFETY', finishMessage, index: 0 }] }, draws: true, text: '' };
  }
  const says = speaks || fault === 'fewer' ? SAYS : '';
  const [width, height] = ratioOf(ratio, SIDES[size]);
  const made = { type: 'image/png', bytes: picture({ seed: text, width, height }) };
  const { type: mimeType, bytes } = spoilt(made, fault);
  const drawn = { inlineData: { mimeType, data: bytes.toString('base64') } };
  const parts = [...(says === '' ? [] : [{ text: says }]), ...(fault === 'fewer' ? [] : [drawn])];
  const finishReason = fault === 'fewer' ? 'NO_IMAGE' : 'STOP';
  return {
    told: { candidates: [{ content: { parts, role: 'model' }, finishReason, index: 0 }] },
    draws: fault !== 'fewer',
    text: says,
  };
}

interface Counted {
  readonly text: number;
  readonly imageInput: number;
  readonly said: number;
  readonly imageOutput: number;
  readonly thoughts: number;
}

function countedOf(
  { text, images, size }: DrawingRequest,
  offer: ImageOffer,
  outcome: Outcome,
  told: AppliedDirective,
): Counted {
  return {
    text: tokensOf(text),
    imageInput: images * offer.inputTokens,
    said: tokensOf(outcome.text),
    imageOutput: outcome.draws ? (offer.tokens[size] ?? 0) : 0,
    thoughts: told.directive.reasoning || offer.thoughts,
  };
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

function pricedAs(
  { text, imageInput, said, imageOutput, thoughts }: Counted,
  { usd }: ImageOffer,
): readonly PricedUnits[] {
  const priced = (unit: string, quantity: number, price: string) => ({ unit, quantity, per: PER_PRICE, price });
  return [
    priced('input', text, usd.input),
    priced('imageInput', imageInput, usd.input),
    priced('output', said + thoughts, usd.output),
    priced('imageOutput', imageOutput, usd.image),
  ];
}

/** What is nothing is not mentioned. */
function usageOf({ text, imageInput, said, imageOutput, thoughts }: Counted) {
  const prompt = text + imageInput;
  const candidates = said + imageOutput;
  const details = (texts: number, images: number) => [
    ...(texts > 0 ? [{ modality: 'TEXT', tokenCount: texts }] : []),
    ...(images > 0 ? [{ modality: 'IMAGE', tokenCount: images }] : []),
  ];
  return {
    promptTokenCount: prompt,
    ...(candidates > 0
      ? { candidatesTokenCount: candidates, candidatesTokensDetails: details(said, imageOutput) }
      : {}),
    totalTokenCount: prompt + candidates + thoughts,
    promptTokensDetails: details(text, imageInput),
    ...(thoughts > 0 ? { thoughtsTokenCount: thoughts } : {}),
  };
}
