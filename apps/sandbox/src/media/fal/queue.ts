/**
 * fal's queue: submit a request, ask for its status, fetch its result; then the files it made. Billed when it is done.
 * Facts: `@fal-ai/client`, docs.fal.ai.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxBill } from '../../bill.ts';
import { readDirective } from '../../provider/directive.ts';
import { applyFault, FaultCounter } from '../../provider/faults.ts';
import { type Call, Refusal, type Routes } from '../../router.ts';
import { loseAnswer, sendFile } from '../sandbox-file.ts';
import { inputIn } from './input.ts';
import { chargeFor, failureOf, fileOf, type Job, resultOf } from './job.ts';
import { FAL } from './offers.ts';
import { FalStorage } from './storage.ts';
import { FalWebhooks } from './webhooks.ts';

/** The oldest is forgotten first. */
const MOST_JOBS = 100_000;
const STATUS = { '400': 400, '429': 429, '500': 500, overloaded: 503 } as const;
/** What infrastructure calls its failures. */
const ERROR_TYPES = {
  '400': 'bad_request',
  '429': 'rate_limited',
  '500': 'internal_error',
  overloaded: 'runner_scheduling_failure',
} as const;
/** Whatever the model's path below its application is, its requests are the application's. */
const REQUEST = /^([^/]+\/[^/]+)\/(?:.+\/)?requests\/([^/]+?)(?:\/(status|status\/stream|cancel))?$/;
const LOOK_AGAIN_MS = 20;
/** So often a web hook comes that comes too often. */
const TOO_OFTEN = 3;

export class FalServer {
  private readonly jobs = new Map<string, Job>();
  private readonly faults = new FaultCounter();
  private readonly hooks = new FalWebhooks();
  private readonly storage = new FalStorage();

  constructor(private readonly bill: SandboxBill) {}

  routes(): Routes {
    const tellKeys = (call: Call) => call.json(200, this.hooks.jwks());
    return {
      ...this.storage.routes(assertKey),
      'GET /fal-rest/.well-known/jwks.json': tellKeys,
      'GET /fal/.well-known/jwks.json': tellKeys,
      'GET /fal-media/files/:name': (call) => this.sendFile(call),
      'POST /fal/*': (call) => this.submit(call),
      'GET /fal/*': (call) => this.look(call),
      'PUT /fal/*': (call) => this.cancel(call),
    };
  }

  close(): void {
    this.hooks.close();
    this.jobs.clear();
  }

  /** The queue takes what it is given: what is wrong with it is found out when it is worked on. */
  private async submit(call: Call): Promise<void> {
    assertKey(call);
    const model = call.parameter;
    const offer = FAL[model];
    if (!offer) throw new Refusal(404, { detail: `Application '${model}' not found` });
    const body = await call.text();
    const input = judged(() => inputIn(body, offer));
    const directive = readDirective(input instanceof Refusal ? '' : input.words);
    const fault = this.faults.next(directive, 'fal');
    if (applyFault(fault, call, refusalAsTold)) return;
    const hookUrl = call.query.get('fal_webhook') ?? undefined;
    const host = call.request.headers.host ?? '';
    const job: Job = { id: randomUUID(), model, offer, input, fault, host, hookUrl, state: 'IN_QUEUE' };
    this.keep(job);
    if (fault === 'duplicate') await this.reportTooEarly(job);
    void this.work(job, directive.latency);
    if (fault === 'lost') return loseAnswer(call);
    const told = { ...addresses(job), status: 'IN_QUEUE', request_id: job.id, gateway_request_id: job.id };
    call.json(200, { ...told, queue_position: 0 }, { 'x-fal-request-id': job.id });
  }

  private keep(job: Job): void {
    this.jobs.set(job.id, job);
    const oldest = this.jobs.keys().next().value;
    if (this.jobs.size > MOST_JOBS && oldest !== undefined) this.jobs.delete(oldest);
  }

  /** Half of the time it waits, half of it works. */
  private async work(job: Job, milliseconds: number): Promise<void> {
    if (milliseconds > 0) {
      await delay(milliseconds / 2, undefined, { ref: false });
      if (!this.jobs.has(job.id)) return;
      job.state = 'IN_PROGRESS';
      await delay(milliseconds / 2, undefined, { ref: false });
      if (!this.jobs.has(job.id)) return;
    }
    job.state = 'COMPLETED';
    chargeFor(job, this.bill);
    const times = job.fault === 'duplicate' ? TOO_OFTEN : 1;
    await Promise.all(Array.from({ length: times }, () => this.report(job)));
  }

  private async report(job: Job): Promise<void> {
    const { id: requestId, hookUrl: url } = job;
    if (url === undefined) return;
    const failure = failureOf(job);
    if (!failure) return this.hooks.send({ requestId, url, status: 'OK', payload: resultOf(job) });
    const error = `Invalid status code: ${failure.status}`;
    await this.hooks.send({ requestId, url, status: 'ERROR', error, payload: failure.body });
  }

  /** Before the request is answered, let alone done, also by somebody who is not fal. */
  private async reportTooEarly({ id: requestId, hookUrl: url }: Job): Promise<void> {
    if (url === undefined) return;
    const error = 'Invalid status code: 500';
    await this.hooks.forge({ requestId, url, status: 'ERROR', error, payload: { detail: 'Forged' } });
    await this.hooks.send({ requestId, url, status: 'OK', payload: null });
  }

  private known(call: Call) {
    assertKey(call);
    const [, , id = '', what] = REQUEST.exec(call.parameter) ?? [];
    const job = this.jobs.get(id);
    if (!job) throw new Refusal(404, { detail: 'Request not found' });
    return { job, what };
  }

  /** Only what waits is never made; what is being made is finished, and billed. */
  private cancel(call: Call): void {
    const { job, what } = this.known(call);
    if (what !== 'cancel') throw new Refusal(405, { detail: 'Method Not Allowed' });
    if (job.state === 'COMPLETED') throw new Refusal(400, { status: 'ALREADY_COMPLETED' });
    if (job.state === 'IN_QUEUE') this.jobs.delete(job.id);
    call.json(202, { status: 'CANCELLATION_REQUESTED' });
  }

  private async look(call: Call): Promise<void> {
    const { job, what } = this.known(call);
    if (what === 'cancel') throw new Refusal(405, { detail: 'Method Not Allowed' });
    if (what === 'status/stream') return this.tellUntilDone(call, job);
    const hasLogs = call.query.get('logs') === '1';
    if (what === 'status') return call.json(job.state === 'COMPLETED' ? 200 : 202, statusOf(job, hasLogs));
    if (job.state !== 'COMPLETED') throw new Refusal(400, { detail: 'Request is still in progress' });
    const failure = failureOf(job);
    const headers = { 'x-fal-request-id': job.id };
    if (failure) throw new Refusal(failure.status, failure.body, { ...failure.headers, ...headers });
    call.json(200, resultOf(job), headers);
  }

  private async tellUntilDone({ response }: Call, job: Job): Promise<void> {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let told = ''; !response.destroyed; await delay(LOOK_AGAIN_MS, undefined, { ref: false })) {
      if (told !== job.state) response.write(`data: ${JSON.stringify(statusOf(job, true))}\n\n`);
      told = job.state;
      if (told === 'COMPLETED') return void response.end();
    }
  }

  private async sendFile(call: Call): Promise<void> {
    const [, id = '', index] = /^(.{36})-(\d+)\.\w+$/.exec(call.parameter) ?? [];
    const job = this.jobs.get(id);
    if (job?.state !== 'COMPLETED' || failureOf(job)) throw new Refusal(404, { detail: 'Not Found' });
    await sendFile(call, fileOf(job, Number(index)), job.fault);
  }
}

function judged<T>(read: () => T): T | Refusal {
  try {
    return read();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function addresses({ host, model, id }: Job) {
  const [owner, application] = model.split('/');
  const url = `http://${host}/fal/${owner}/${application}/requests/${id}`;
  return { response_url: url, status_url: `${url}/status`, cancel_url: `${url}/cancel` };
}

function statusOf(job: Job, hasLogs: boolean) {
  const { state, id: request_id } = job;
  const head = { status: state, request_id, ...addresses(job) };
  if (state === 'IN_QUEUE') return { ...head, queue_position: 0 };
  const line = { message: 'Working', level: 'INFO', source: 'USER', timestamp: new Date().toISOString() };
  const logs = hasLogs ? [line] : null;
  if (state === 'IN_PROGRESS') return { ...head, logs };
  const { status, body } = failureOf(job) ?? {};
  const { error_type } = (body ?? {}) as { readonly error_type?: string };
  const failed =
    status === undefined ? {} : { error: `Invalid status code: ${status}`, ...(error_type ? { error_type } : {}) };
  return { ...head, logs, metrics: { inference_time: 0.1 }, ...failed };
}

function refusalAsTold(kind: keyof typeof STATUS): Refusal {
  const error_type = ERROR_TYPES[kind];
  const headers = { 'x-fal-error-type': error_type, ...(kind === '429' ? { 'retry-after': '1' } : {}) };
  return new Refusal(STATUS[kind], { detail: 'As the sandbox was instructed', error_type }, headers);
}

function assertKey({ request, parameter }: Call): void {
  if (/^Key \S/.test(request.headers.authorization ?? '')) return;
  throw new Refusal(401, { detail: `Cannot access application '${parameter}'. Authentication is required.` });
}
