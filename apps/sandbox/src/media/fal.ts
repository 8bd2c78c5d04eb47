/** fal's queue: submit a request, ask for its status, fetch its result; then the files it made. Billed when it is done. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bill } from '../bill.ts';
import { type Fault, readDirective } from '../provider/directive.ts';
import { FaultCounter, failedOutright } from '../provider/faults.ts';
import { type Call, parseObject, Refusal, type Routes } from '../router.ts';
import { FAL, type FalOffer } from './fal-offers.ts';
import { film } from './files/films.ts';
import { picture } from './files/pictures.ts';

interface Job {
  readonly id: string;
  readonly model: string;
  readonly offer: FalOffer;
  readonly input: Input;
  readonly fault: Fault | undefined;
  state: 'IN_QUEUE' | 'IN_PROGRESS' | 'COMPLETED';
}

interface Input {
  readonly prompt: string;
  /** What was chosen, or what it gets that chose none. */
  readonly fields: Readonly<Record<string, string>>;
  readonly images: number;
}

const MOST_IMAGES = 4;
const STATUS = { '400': 400, '429': 429, '500': 500, overloaded: 503 } as const;
/** Whatever the model's path below its application is, its requests are the application's. */
const REQUEST = /^([^/]+\/[^/]+)\/(?:.+\/)?requests\/([^/]+?)(?:\/(status|cancel))?$/;

export function falRoutes(bill: Bill): Routes {
  const jobs = new Map<string, Job>();
  const faults = new FaultCounter();
  const submit = async (call: Call) => {
    assertKey(call);
    const model = call.parameter;
    const offer = FAL[model];
    if (!offer) throw refused(404, `Application '${model}' not found`);
    const input = inputIn((await call.body()).toString(), offer);
    const directive = readDirective(input.prompt);
    const fault = faults.next(directive, 'fal');
    if (failedOutright(fault, call, (kind) => refused(STATUS[kind], 'As the sandbox was instructed'))) return;
    const job: Job = { id: randomUUID(), model, offer, input, fault, state: 'IN_QUEUE' };
    jobs.set(job.id, job);
    void work(job, directive.latency, bill, jobs);
    call.json(200, { ...addresses(call, job), status: 'IN_QUEUE', request_id: job.id, queue_position: 0 });
  };
  const known = (call: Call) => {
    assertKey(call);
    const [, , id = '', what] = REQUEST.exec(call.parameter) ?? [];
    const job = jobs.get(id);
    if (!job) throw refused(404, 'Request not found');
    return { job, what };
  };
  /** Only what waits is never made; what is being made is finished, and billed. */
  const cancel = (call: Call) => {
    const { job, what } = known(call);
    if (what !== 'cancel') throw refused(405, 'Method Not Allowed');
    if (job.state === 'COMPLETED') return call.json(400, { status: 'ALREADY_COMPLETED' });
    if (job.state === 'IN_QUEUE') jobs.delete(job.id);
    call.json(202, { status: 'CANCELLATION_REQUESTED' });
  };
  const look = (call: Call) => {
    const { job, what } = known(call);
    if (what === 'cancel') throw refused(405, 'Method Not Allowed');
    if (what === 'status') return tellStatus(call, job);
    if (job.state !== 'COMPLETED') throw refused(400, 'Request is still in progress');
    if (job.fault === 'error') throw refused(422, 'The request could not be fulfilled, as the sandbox was instructed');
    call.json(200, resultOf(call, job));
  };
  return {
    'GET /fal/files/:name': (call) => sendFile(call, jobs),
    'POST /fal/*': submit,
    'GET /fal/*': look,
    'PUT /fal/*': cancel,
  };
}

/** Half of the time it waits, half of it works; what failed costs nothing. */
async function work(job: Job, milliseconds: number, bill: Bill, jobs: ReadonlyMap<string, Job>): Promise<void> {
  if (milliseconds > 0) {
    await delay(milliseconds / 2, undefined, { ref: false });
    if (!jobs.has(job.id)) return;
    job.state = 'IN_PROGRESS';
    await delay(milliseconds / 2, undefined, { ref: false });
  }
  job.state = 'COMPLETED';
  if (job.fault === 'error') return;
  const { offer, input } = job;
  const fits = (when: Readonly<Record<string, string>>) =>
    Object.entries(when).every(([field, word]) => input.fields[field] === word);
  const { usd } = offer.others?.find(({ when }) => fits(when)) ?? offer;
  const quantity = { image: input.images, second: secondsOf(input), clip: 1 }[offer.per];
  bill.chargeUnits(job.id, job.model, { unit: offer.per, quantity, per: 1, price: usd }, job.fault);
}

function secondsOf({ fields }: Input): number {
  return Number.parseInt(fields.duration ?? '0', 10);
}

/** @throws Refusal 422 as fal says it, with the field's place */
function inputIn(json: string, { required, fields }: FalOffer): Input {
  const body = parseObject(json);
  if (!body) throw wrong('body', 'Input should be a valid dictionary', 'dict_type');
  for (const field of required)
    if (typeof body[field] !== 'string' || body[field] === '') throw wrong(field, 'Field required', 'missing');
  const chosen = Object.entries(fields).map(([field, words]) => {
    const word = String(body[field] ?? words[0]);
    if (!words.includes(word)) throw wrong(field, `Input should be ${words.join(', ')}`, 'literal_error');
    return [field, word] as const;
  });
  const images = Number(body.num_images ?? 1);
  if (!Number.isInteger(images) || images < 1 || images > MOST_IMAGES)
    throw wrong('num_images', `Input should be from 1 to ${MOST_IMAGES}`, 'less_than_equal');
  return { prompt: String(body.prompt ?? ''), fields: Object.fromEntries(chosen), images };
}

function addresses({ request }: Call, { id, model }: Job) {
  const [owner, application] = model.split('/');
  const url = `http://${request.headers.host}/fal/${owner}/${application}/requests/${id}`;
  return { response_url: url, status_url: `${url}/status`, cancel_url: `${url}/cancel` };
}

function tellStatus(call: Call, job: Job): void {
  const { state } = job;
  const more = state === 'IN_QUEUE' ? { queue_position: 0 } : { logs: null };
  const metrics = state === 'COMPLETED' ? { metrics: { inference_time: 0.1 } } : {};
  const body = { status: state, request_id: job.id, ...addresses(call, job), ...more, ...metrics };
  call.json(state === 'COMPLETED' ? 200 : 202, body);
}

function resultOf({ request }: Call, { id, offer, input }: Job) {
  const file = (name: string, content_type: string) => {
    const file_name = `${id}${name}`;
    return { url: `http://${request.headers.host}/fal/files/${file_name}`, content_type, file_name };
  };
  if (offer.makes === 'video') return { video: file('.mp4', 'video/mp4') };
  if (offer.makes === 'image') return { image: file('-0.png', 'image/png') };
  const images = Array.from({ length: input.images }, (_, i) => file(`-${i}.png`, 'image/png'));
  return { images, seed: 1, prompt: input.prompt, has_nsfw_concepts: images.map(() => false) };
}

/** Anyone may fetch them. */
function sendFile(call: Call, jobs: ReadonlyMap<string, Job>): void {
  const [, id = '', kind] = /^(.{36})(-\d\.png|\.mp4)$/.exec(call.parameter) ?? [];
  const job = jobs.get(id);
  if (!job || kind === undefined) throw refused(404, 'Not Found');
  if (kind === '.mp4')
    call.bytes(
      200,
      'video/mp4',
      film({ words: job.input.prompt, seconds: secondsOf(job.input), width: 640, height: 360 }),
    );
  else call.bytes(200, 'image/png', picture({ words: `${job.input.prompt} ${kind}`, width: 64, height: 64 }));
}

function assertKey({ request, parameter }: Call): void {
  if (/^Key \S/.test(request.headers.authorization ?? '')) return;
  throw refused(401, `Cannot access application '${parameter}'. Authentication is required.`);
}

function refused(status: number, detail: string): Refusal {
  return new Refusal(status, { detail });
}

function wrong(field: string, msg: string, type: string): Refusal {
  const loc = field === 'body' ? ['body'] : ['body', field];
  return new Refusal(422, { detail: [{ loc, msg, type }] });
}
