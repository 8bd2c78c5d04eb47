/** OpenAI's `POST /images/generations` and `/images/edits`, billed by tokens, as the usage says. */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { picture } from '../../media/files/images.ts';
import { type AppliedDirective, Instructions, isForbidden } from '../../media/instructions.ts';
import { isBilled, sendAnswer, spoilt } from '../../media/sandbox-file.ts';
import type { Call, Routes } from '../../router.ts';
import { assertKey, refusalAsTold, refusalOf } from '../errors.ts';
import { type ImageTokens, pricedBy } from './image-offers.ts';
import { editIn, generationIn, type SandboxImageRequest } from './image-request.ts';

const SQUARE = 1_024 * 1_024;
const OBLONG = 1_536 * 1_024;
const CHARACTERS_PER_TOKEN = 4;
/** Of a picture that is brought, and what looking closely at it adds. */
const SOURCE_TOKENS = 194;
const FIDELITY_TOKENS = 4_096;

export function imageRoutes(bill: SandboxBill): Routes {
  const instructions = new Instructions('openai', refusalAsTold);
  const serve = async (call: Call, asked: SandboxImageRequest) => {
    const told = await instructions.follow(call, asked.prompt);
    if (!told) return;
    const id = `req_${randomUUID().replaceAll('-', '')}`;
    const made = Math.max(0, asked.n - (told.fault === 'fewer' ? 1 : 0));
    const tokens = tokensOf(asked, made);
    if (isBilled(told.fault)) bill.chargeParts(id, asked.model.id, pricedBy(asked.model, tokens), told.fault);
    if (isForbidden(told)) throw blocked(id);
    sendAnswer(call, answerTo(asked, made, tokens, told), told.fault, { 'x-request-id': id });
  };
  return {
    'POST /openai/v1/images/generations': async (call) => {
      assertKey(call);
      await serve(call, await generationIn(call));
    },
    'POST /openai/v1/images/edits': async (call) => {
      assertKey(call);
      await serve(call, await editIn(call));
    },
  };
}

function blocked(id: string) {
  const message =
    'Your request was rejected by the safety system. If you believe this is an error, contact us at help.openai.com ' +
    `and include the request ID ${id}. safety_violations=[sexual].`;
  return refusalOf('image_generation_user_error', 400, message, { code: 'moderation_blocked' });
}

/** What is brought is counted once, however many pictures are made of it. */
function tokensOf(
  { model, prompt, quality, width, height, sources, fidelity }: SandboxImageRequest,
  made: number,
): ImageTokens {
  const [square = 0, oblong = 0] = model.tokens[quality] ?? [];
  const isUsual = width * height === SQUARE || width * height === OBLONG;
  const bySize = Math.ceil((square * width * height) / SQUARE);
  const each = !isUsual ? bySize : width === height ? square : oblong;
  return {
    input: Math.ceil(prompt.length / CHARACTERS_PER_TOKEN),
    imageInput: sources * (SOURCE_TOKENS + (fidelity === 'high' ? FIDELITY_TOKENS : 0)),
    imageOutput: made * each,
  };
}

function answerTo(asked: SandboxImageRequest, made: number, tokens: ImageTokens, { fault }: AppliedDirective) {
  const { prompt, width, height, format, quality, size, background } = asked;
  const data = Array.from({ length: made }, (_, i) => {
    const bytes = picture({ seed: `${prompt} ${i}`, width, height, format });
    return { b64_json: spoilt({ type: `image/${format}`, bytes }, fault).bytes.toString('base64') };
  });
  const { input: text_tokens, imageInput: image_tokens, imageOutput: output_tokens } = tokens;
  const input_tokens = text_tokens + image_tokens;
  const usage = {
    input_tokens,
    input_tokens_details: { text_tokens, image_tokens },
    output_tokens,
    output_tokens_details: { text_tokens: 0, image_tokens: output_tokens },
    total_tokens: input_tokens + output_tokens,
  };
  const told = { created: Math.floor(Date.now() / 1_000), background, data, output_format: format, quality, size };
  return fault === 'no_usage' ? told : { ...told, usage };
}
