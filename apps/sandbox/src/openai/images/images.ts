/** OpenAI's `POST /images/generations` and `/images/edits`, billed by the tokens of the usage. */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { type AppliedDirective, DirectiveRunner, isForbidden } from '../../media/directive-runner.ts';
import { createImage } from '../../media/files/images.ts';
import { applyFileFault, isBilled, sendResponse } from '../../media/sandbox-file.ts';
import type { Call, Routes } from '../../router.ts';
import { assertKey, createError, createFaultError } from '../errors.ts';
import { type ImageTokens, toPricedUnits } from './image-offers.ts';
import { parseEdit, parseGeneration, type SandboxImageRequest } from './image-request.ts';

const SQUARE = 1_024 * 1_024;
const OBLONG = 1_536 * 1_024;
const CHARACTERS_PER_TOKEN = 4;
/** Input tokens of a source image. */
const SOURCE_TOKENS = 194;
/** Additional tokens of a source image with high input fidelity. */
const FIDELITY_TOKENS = 4_096;

export function imageRoutes(bill: SandboxBill): Routes {
  const directiveRunner = new DirectiveRunner('openai', createFaultError);
  const serve = async (call: Call, request: SandboxImageRequest) => {
    const applied = await directiveRunner.runDirective(call, request.prompt);
    if (!applied) return;
    const id = `req_${randomUUID().replaceAll('-', '')}`;
    const imageCount = Math.max(0, request.n - (applied.fault === 'fewer' ? 1 : 0));
    const tokens = countTokens(request, imageCount);
    if (isBilled(applied.fault))
      bill.chargeParts(id, request.model.id, toPricedUnits(request.model, tokens), applied.fault);
    if (isForbidden(applied)) throw blockedError(id);
    sendResponse(call, createResponse(request, imageCount, tokens, applied), applied.fault, { 'x-request-id': id });
  };
  return {
    'POST /openai/v1/images/generations': async (call) => {
      assertKey(call);
      await serve(call, await parseGeneration(call));
    },
    'POST /openai/v1/images/edits': async (call) => {
      assertKey(call);
      await serve(call, await parseEdit(call));
    },
  };
}

function blockedError(id: string) {
  const message =
    'Your request was rejected by the safety system. If you believe this is an error, contact us at help.openai.com ' +
    `and include the request ID ${id}. safety_violations=[sexual].`;
  return createError('image_generation_user_error', 400, message, { code: 'moderation_blocked' });
}

/** Source images are counted once, whatever the number of generated images. */
function countTokens(
  { model, prompt, quality, width, height, sources, fidelity }: SandboxImageRequest,
  imageCount: number,
): ImageTokens {
  const [square = 0, oblong = 0] = model.tokens[quality] ?? [];
  const isStandardSize = width * height === SQUARE || width * height === OBLONG;
  const bySize = Math.ceil((square * width * height) / SQUARE);
  const tokensPerImage = !isStandardSize ? bySize : width === height ? square : oblong;
  return {
    input: Math.ceil(prompt.length / CHARACTERS_PER_TOKEN),
    imageInput: sources * (SOURCE_TOKENS + (fidelity === 'high' ? FIDELITY_TOKENS : 0)),
    imageOutput: imageCount * tokensPerImage,
  };
}

function createResponse(
  request: SandboxImageRequest,
  imageCount: number,
  tokens: ImageTokens,
  { fault, directive }: AppliedDirective,
) {
  const { prompt, width, height, format, quality, size, background } = request;
  const data = Array.from({ length: imageCount }, (_, i) => {
    const bytes = createImage({ seed: `${prompt} ${i}`, width, height, format, minBytes: directive.bytes ?? 0 });
    return { b64_json: applyFileFault({ type: `image/${format}`, bytes }, fault).bytes.toString('base64') };
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
  const response = { created: Math.floor(Date.now() / 1_000), background, data, output_format: format, quality, size };
  return fault === 'no_usage' ? response : { ...response, usage };
}
