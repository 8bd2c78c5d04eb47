/** A request in fal's queue, its result and its cost. */
import type { SandboxBill } from '../../bill.ts';
import type { Fault } from '../../provider/directive.ts';
import { HttpError } from '../../router.ts';
import { createImage, type ImageFormat } from '../files/images.ts';
import { createVideo } from '../files/videos.ts';
import { applyFileFault, type SandboxFile } from '../sandbox-file.ts';
import { type FalInput, invalidFieldError } from './input.ts';
import type { FalOffer, ResultField } from './offers.ts';

export interface FalJob {
  readonly id: string;
  readonly model: string;
  readonly falOffer: FalOffer;
  /** The parsed input, or the error of the result: fal's queue accepts any input. */
  readonly input: FalInput | HttpError;
  readonly fault: Fault | undefined;
  /** Host under which the client reached the sandbox. */
  readonly host: string;
  readonly webhookUrl: string | undefined;
  state: 'IN_QUEUE' | 'IN_PROGRESS' | 'COMPLETED';
}

const FRAMES_PER_SECOND = 24;

/** Returns why the job fails; undefined if it succeeds. */
export function findFailure({ input, fault }: FalJob): HttpError | undefined {
  if (input instanceof HttpError) return input;
  if (fault === 'policy' || fault === 'policy_billed') {
    const msg = 'The content could not be processed because it was flagged by a content checker.';
    return invalidFieldError('prompt', msg, 'content_policy_violation', input.prompt);
  }
  if (fault !== 'error') return undefined;
  const error = { detail: 'Internal server error, as the sandbox was instructed.', error_type: 'internal_error' };
  return new HttpError(500, error, { 'x-fal-error-type': error.error_type });
}

/** Returns the number of generated files. */
function countFiles({ falOffer, fault }: FalJob, { images }: FalInput): number {
  return Math.max(0, images - (fault === 'fewer' && falOffer.output === 'images' ? 1 : 0));
}

/** Bills a completed job. A failed job costs nothing, except with the fault `policy_billed`. */
export function chargeJob(job: FalJob, bill: SandboxBill): void {
  const { id, model, falOffer, input, fault } = job;
  if (input instanceof HttpError || (findFailure(job) && fault !== 'policy_billed')) return;
  const matchesInput = ({ when }: { readonly when: Readonly<Record<string, string>> }) =>
    Object.entries(when).every(([field, word]) => input.fields[field] === word);
  const { usd: price } = falOffer.variants?.find(matchesInput) ?? falOffer;
  const quantity = { image: countFiles(job, input), second: input.seconds, clip: 1 }[falOffer.per];
  const units = { unit: falOffer.per, quantity, per: 1, price };
  const extras = (falOffer.extras ?? [])
    .filter(matchesInput)
    .map(({ usd }) => ({ unit: 'request', quantity: 1, per: 1, price: usd }));
  if (extras.length === 0) bill.chargeUnits(id, model, units, fault);
  else bill.chargeParts(id, model, [units, ...extras], fault);
}

/** Returns the result of a successful job: its files, and the fields that the model adds to them. */
export function toResult(job: FalJob): Readonly<Record<string, unknown>> {
  const { output, resultFields = [] } = job.falOffer;
  const input = job.input as FalInput;
  const count = output === 'images' ? countFiles(job, input) : 1;
  const files = Array.from({ length: count }, (_, i) => toFileJson(job, input, i));
  const fields: Readonly<Record<ResultField, unknown>> = {
    description: '',
    has_nsfw_concepts: files.map(() => false),
    prompt: input.prompt,
    seed: 1,
    timings: {},
    video_id: `video_${job.id}`,
  };
  return {
    [output]: output === 'images' ? files : files[0],
    ...Object.fromEntries(resultFields.map((name) => [name, fields[name]])),
  };
}

function toFileJson(job: FalJob, input: FalInput, index: number) {
  const { type, bytes } = createFile(job, index);
  const file_name = getFileName(job, index);
  const inline = input.inline && applyFileFault({ type, bytes }, job.fault);
  const url = inline
    ? `data:${inline.type};base64,${inline.bytes.toString('base64')}`
    : `http://${job.host}/fal-media/files/${file_name}`;
  const { width, height, seconds: duration } = input;
  const length = { fps: FRAMES_PER_SECOND, duration, num_frames: duration * FRAMES_PER_SECOND };
  const details = { width, height, ...(job.falOffer.output === 'video' ? length : {}) };
  return {
    url,
    content_type: type,
    file_name,
    file_size: bytes.length,
    ...(job.falOffer.describesFiles ? details : {}),
  };
}

/** Creates a file of the result. */
export function createFile({ falOffer, input }: FalJob, index: number): SandboxFile {
  const { directiveText, prompt, width, height, seconds, fields } = input as FalInput;
  const seed = `${prompt || directiveText} ${index}`;
  if (falOffer.output === 'video') {
    const hasAudio = fields.generate_audio === 'true';
    return { type: 'video/mp4', bytes: createVideo({ seed, seconds, width, height, hasAudio }) };
  }
  const format = (fields.output_format ?? 'png') as ImageFormat;
  return { type: `image/${format}`, bytes: createImage({ seed, width, height, format }) };
}

function getFileName({ id, falOffer, input }: FalJob, index: number): string {
  const format = (input as FalInput).fields.output_format ?? 'png';
  return `${id}-${index}.${falOffer.output === 'video' ? 'mp4' : format}`;
}
