/**
 * Veo: `:predictLongRunning`, its operation, and the download, which redirects to the resulting file:
 * https://ai.google.dev/gemini-api/docs/video
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxBill } from '../bill.ts';
import { isImage } from '../media/files/images.ts';
import { createVideo } from '../media/files/videos.ts';
import { dropResponse, sendFile } from '../media/sandbox-file.ts';
import { type Fault, parseDirective } from '../provider/directive.ts';
import { applyFault, FaultCounter } from '../provider/faults.ts';
import { type Call, parseObject } from '../router.ts';
import { createError, createFaultError } from './errors.ts';
import { VEO, type VideoOffer } from './google-offers.ts';

interface VideoOrder {
  readonly prompt: string;
  readonly seconds: number;
  readonly resolution: string;
  readonly ratio: string;
  /** USD per second. */
  readonly price: string;
}

interface Operation {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly order: VideoOrder;
  readonly fault: Fault | undefined;
  readonly host: string;
  done: boolean;
}

/** Beyond this number the oldest operation is removed. */
const MAX_OPERATIONS = 100_000;
const VIDEO_SECONDS = [8, 6, 4];
const LINES: Readonly<Record<string, number>> = { '720p': 720, '1080p': 1_080, '4k': 2_160 };
const PARAMETERS = [
  'aspectRatio',
  'resolution',
  'durationSeconds',
  'personGeneration',
  'negativePrompt',
  'sampleCount',
  'seed',
];
const FILTERED =
  'We encountered an issue with the content of your request, and no video was made. You have not been charged.';
const INTERNAL = 13;

export class VeoOperations {
  private readonly operations = new Map<string, Operation>();
  private readonly faults = new FaultCounter();

  constructor(private readonly bill: SandboxBill) {}

  async startOperation(call: Call, model: string): Promise<void> {
    const order = parseOrder(await call.readText(), VEO[model] as VideoOffer);
    const directive = parseDirective(order.prompt);
    const fault = this.faults.selectFault(directive, 'google');
    if (applyFault(fault, call, createFaultError)) return;
    const id = randomUUID().replaceAll('-', '').slice(0, 20);
    const host = call.request.headers.host ?? '';
    const name = `models/${model}/operations/${id}`;
    const operation: Operation = { id, name, model, order, fault, host, done: false };
    this.operations.set(id, operation);
    const oldest = this.operations.keys().next().value;
    if (this.operations.size > MAX_OPERATIONS && oldest !== undefined) this.operations.delete(oldest);
    void this.processOperation(operation, directive.latency);
    if (fault === 'lost') return dropResponse(call);
    call.sendJson(200, { name });
  }

  sendStatus(call: Call, id: string): void {
    const operation = this.operations.get(id);
    if (!operation) throw createError(404, 'Requested entity was not found.');
    const { name, done } = operation;
    call.sendJson(200, done ? { name, done, ...toResult(operation) } : { name });
  }

  /** Redirects to the file at another path, as Google redirects to another host. */
  redirectToFile(call: Call, id: string): void {
    const operation = this.operations.get(id);
    if (!operation?.done || !isGenerated(operation)) throw createError(404, 'Requested entity was not found.');
    const location = `http://${operation.host}/google-media/${id}.mp4`;
    call.response.writeHead(302, { location, 'content-length': 0 }).end();
  }

  async sendVideo(call: Call): Promise<void> {
    const operation = this.operations.get(call.parameter.replace('.mp4', ''));
    if (!operation?.done || !isGenerated(operation)) throw createError(404, 'Requested entity was not found.');
    const { order, fault } = operation;
    const lines = LINES[order.resolution] ?? 720;
    const longer = Math.round((lines * 16) / 9);
    const [width, height] = order.ratio === '16:9' ? [longer, lines] : [lines, longer];
    const bytes = createVideo({ seed: order.prompt, seconds: order.seconds, width, height, hasAudio: true });
    await sendFile(call, { type: 'video/mp4', bytes }, fault);
  }

  close(): void {
    this.operations.clear();
  }

  private async processOperation(operation: Operation, milliseconds: number): Promise<void> {
    if (milliseconds > 0) await delay(milliseconds, undefined, { ref: false });
    if (!this.operations.has(operation.id)) return;
    operation.done = true;
    const { id, model, order, fault } = operation;
    if (!isGenerated(operation) && fault !== 'policy_billed') return;
    this.bill.chargeUnits(id, model, { unit: 'second', quantity: order.seconds, per: 1, price: order.price }, fault);
  }
}

function isGenerated({ fault }: Operation): boolean {
  return fault !== 'error' && fault !== 'policy' && fault !== 'policy_billed' && fault !== 'fewer';
}

/** A filtered or missing video is reported in a response, a failure as an error. */
function toResult({ id, host, fault }: Operation) {
  if (fault === 'error')
    return { error: { code: INTERNAL, message: 'Internal error, as the sandbox was instructed.' } };
  const video = { uri: `http://${host}/google/v1beta/files/${id}:download?alt=media` };
  const isFiltered = fault === 'policy' || fault === 'policy_billed';
  const filtered = { raiMediaFilteredCount: 1, raiMediaFilteredReasons: [FILTERED] };
  const samples = fault === 'fewer' ? {} : { generatedSamples: [{ video }] };
  const type = 'type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse';
  return { response: { '@type': type, generateVideoResponse: isFiltered ? filtered : samples } };
}

/** @throws HttpError 400 */
function parseOrder(json: string, { usd }: VideoOffer): VideoOrder {
  const { instances, parameters = {} } = parseObject(json) ?? {};
  const [instance] = Array.isArray(instances) ? instances : [];
  const { prompt, image } = (instance ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof prompt !== 'string' || prompt === '') throw createError(400, 'A text prompt is required.');
  assertImage(image);
  const options = (parameters ?? {}) as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(options).find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined)
    throw createError(
      400,
      `\`${unknown}\` isn't supported by this model. Please remove it or refer to the Gemini API documentation for supported usage.`,
    );
  const { aspectRatio: ratio = '16:9', resolution = '720p', durationSeconds = 8, sampleCount = 1 } = options;
  const seconds = Number(durationSeconds);
  const price = usd[String(resolution)];
  if (ratio !== '16:9' && ratio !== '9:16')
    throw createError(400, `The aspect ratio ${ratio} is not supported by this model.`);
  if (price === undefined) throw createError(400, `The resolution ${resolution} is not supported by this model.`);
  if (!VIDEO_SECONDS.includes(seconds) || (resolution !== '720p' && seconds !== 8))
    throw createError(
      400,
      `The number value for \`durationSeconds\` is out of bound for ${resolution}: ${durationSeconds}.`,
    );
  if (sampleCount !== 1) throw createError(400, 'The number value for `sampleCount` is out of bound: it must be 1.');
  return { prompt, seconds, resolution: String(resolution), ratio, price };
}

function assertImage(image: unknown): void {
  if (image === undefined) return;
  const { bytesBase64Encoded: data, mimeType } = (image ?? {}) as Readonly<Record<string, unknown>>;
  const isOne = typeof data === 'string' && typeof mimeType === 'string' && isImage(Buffer.from(data, 'base64'));
  if (!isOne) throw createError(400, 'Unable to process input image.');
}
