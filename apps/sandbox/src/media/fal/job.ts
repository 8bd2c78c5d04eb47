/** A request in fal's queue, what comes of it, and what it costs. */
import type { SandboxBill } from '../../bill.ts';
import type { Fault } from '../../provider/directive.ts';
import { Refusal } from '../../router.ts';
import { type PictureFormat, picture } from '../files/images.ts';
import { film } from '../files/videos.ts';
import { type SandboxFile, spoilt } from '../sandbox-file.ts';
import { type FalInput, wrong } from './input.ts';
import type { FalOffer } from './offers.ts';

export interface Job {
  readonly id: string;
  readonly model: string;
  readonly offer: FalOffer;
  /** As it will be judged: fal's queue takes whatever it is given. */
  readonly input: FalInput | Refusal;
  readonly fault: Fault | undefined;
  /** Where it is reached. */
  readonly host: string;
  readonly hookUrl: string | undefined;
  state: 'IN_QUEUE' | 'IN_PROGRESS' | 'COMPLETED';
}

const FRAMES_PER_SECOND = 24;

/** Why nothing comes of it; undefined where something does. */
export function failureOf({ input, fault }: Job): Refusal | undefined {
  if (input instanceof Refusal) return input;
  if (fault === 'policy' || fault === 'policy_billed') {
    const msg = 'The content could not be processed because it was flagged by a content checker.';
    return wrong('prompt', msg, 'content_policy_violation', input.prompt);
  }
  if (fault !== 'error') return undefined;
  const error = { detail: 'Internal server error, as the sandbox was instructed.', error_type: 'internal_error' };
  return new Refusal(500, error, { 'x-fal-error-type': error.error_type });
}

/** How many files it makes. */
function madeBy({ offer, fault }: Job, { images }: FalInput): number {
  return Math.max(0, images - (fault === 'fewer' && offer.makes === 'images' ? 1 : 0));
}

/** Puts a job that has ended on the bill: nothing for what failed, unless the vendor bills its refusals. */
export function chargeFor(job: Job, bill: SandboxBill): void {
  const { id, model, offer, input, fault } = job;
  if (input instanceof Refusal || (failureOf(job) && fault !== 'policy_billed')) return;
  const fits = ({ when }: { readonly when: Readonly<Record<string, string>> }) =>
    Object.entries(when).every(([field, word]) => input.fields[field] === word);
  const { usd: price } = offer.others?.find(fits) ?? offer;
  const quantity = { image: madeBy(job, input), second: input.seconds, clip: 1 }[offer.per];
  const units = { unit: offer.per, quantity, per: 1, price };
  const extras = (offer.extras ?? [])
    .filter(fits)
    .map(({ usd }) => ({ unit: 'request', quantity: 1, per: 1, price: usd }));
  if (extras.length === 0) bill.chargeUnits(id, model, units, fault);
  else bill.chargeParts(id, model, [units, ...extras], fault);
}

/** The answer of a job that came to something. */
export function resultOf(job: Job): Readonly<Record<string, unknown>> {
  const { offer, fault } = job;
  const input = job.input as FalInput;
  const told = (index: number) => {
    const { type, bytes } = fileOf(job, index);
    const file_name = nameOf(job, index);
    const inline = input.inline && spoilt({ type, bytes }, fault);
    const url = inline
      ? `data:${inline.type};base64,${inline.bytes.toString('base64')}`
      : `http://${job.host}/fal-media/files/${file_name}`;
    const { width, height } = input;
    return { url, content_type: type, file_name, file_size: bytes.length, width, height };
  };
  if (offer.makes === 'video') {
    const { seconds: duration } = input;
    return { video: { ...told(0), fps: FRAMES_PER_SECOND, duration, num_frames: duration * FRAMES_PER_SECOND } };
  }
  if (offer.makes === 'image') return { image: told(0) };
  const images = Array.from({ length: madeBy(job, input) }, (_, i) => told(i));
  return { images, seed: 1, description: '', prompt: input.prompt, has_nsfw_concepts: images.map(() => false) };
}

/** Anyone may fetch it. */
export function fileOf({ offer, input }: Job, index: number): SandboxFile {
  const { words, prompt, width, height, seconds, fields } = input as FalInput;
  const of = `${prompt || words} ${index}`;
  if (offer.makes === 'video') {
    const sound = fields.generate_audio === 'true';
    return { type: 'video/mp4', bytes: film({ seed: of, seconds, width, height, sound }) };
  }
  const format = (fields.output_format ?? 'png') as PictureFormat;
  return { type: `image/${format}`, bytes: picture({ seed: of, width, height, format }) };
}

function nameOf({ id, offer, input }: Job, index: number): string {
  const format = (input as FalInput).fields.output_format ?? 'png';
  return `${id}-${index}.${offer.makes === 'video' ? 'mp4' : format}`;
}
