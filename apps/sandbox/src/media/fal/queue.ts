/**
 * fal's queue: submit a request, poll its status, fetch its result and its files. A request is billed when it is
 * completed. Sources: `@fal-ai/client`, docs.fal.ai.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxBill } from '../../bill.ts';
import { parseDirective } from '../../provider/directive.ts';
import { applyFault, FaultCounter } from '../../provider/faults.ts';
import { type Call, HttpError, type Routes } from '../../router.ts';
import { dropResponse, sendFile } from '../sandbox-file.ts';
import { parseInput } from './input.ts';
import { chargeJob, createFile, type FalJob, findFailure, toResult } from './job.ts';
import { FAL_OFFERS } from './offers.ts';
import { FalStorage } from './storage.ts';
import { FalWebhooks } from './webhooks.ts';

/** Beyond this number the oldest job is removed. */
const MAX_JOBS = 100_000;
const STATUS = { '400': 400, '429': 429, '500': 500, overloaded: 503 } as const;
/** Error types that fal's infrastructure reports. */
const ERROR_TYPES = {
  '400': 'bad_request',
  '429': 'rate_limited',
  '500': 'internal_error',
  overloaded: 'runner_scheduling_failure',
} as const;
/** Path of a request: owner, application, optionally the rest of the model's name, and the id. */
const REQUEST = /^([^/]+\/[^/]+)\/(?:.+\/)?requests\/([^/]+?)(?:\/(status|status\/stream|cancel))?$/;
const POLL_INTERVAL_MS = 20;
/** Number of times that the result of a job with the fault `duplicate` is sent to its webhook. */
const DUPLICATE_REPORTS = 3;

export class FalServer {
  private readonly jobs = new Map<string, FalJob>();
  private readonly faults = new FaultCounter();
  private readonly webhooks = new FalWebhooks();
  private readonly storage = new FalStorage();

  constructor(private readonly bill: SandboxBill) {}

  routes(): Routes {
    const sendKeys = (call: Call) => call.sendJson(200, this.webhooks.getJwks());
    return {
      ...this.storage.routes(assertKey),
      'GET /fal-rest/.well-known/jwks.json': sendKeys,
      'GET /fal/.well-known/jwks.json': sendKeys,
      'GET /fal-media/files/:name': (call) => this.sendFile(call),
      'POST /fal/*': (call) => this.submit(call),
      'GET /fal/*': (call) => this.handleGet(call),
      'PUT /fal/*': (call) => this.cancel(call),
    };
  }

  close(): void {
    this.webhooks.close();
    this.jobs.clear();
  }

  /** Accepts any input. An invalid one becomes the error of the result, as in fal's queue. */
  private async submit(call: Call): Promise<void> {
    assertKey(call);
    const model = call.parameter;
    const falOffer = FAL_OFFERS[model];
    if (!falOffer) throw new HttpError(404, { detail: `Application '${model}' not found` });
    const body = await call.readText();
    const input = tryParse(() => parseInput(body, falOffer));
    const directive = parseDirective(input instanceof HttpError ? '' : input.directiveText);
    const fault = this.faults.selectFault(directive, 'fal');
    if (applyFault(fault, call, createFaultError)) return;
    const hookUrl = call.query.get('fal_webhook') ?? undefined;
    const host = call.request.headers.host ?? '';
    const job: FalJob = {
      id: randomUUID(),
      model,
      falOffer,
      input,
      fault,
      host,
      webhookUrl: hookUrl,
      state: 'IN_QUEUE',
    };
    this.store(job);
    if (fault === 'duplicate') await this.reportTooEarly(job);
    void this.processJob(job, directive.latency);
    if (fault === 'lost') return dropResponse(call);
    const submission = { ...toUrlFields(job), status: 'IN_QUEUE', request_id: job.id, gateway_request_id: job.id };
    call.sendJson(200, { ...submission, queue_position: 0 }, { 'x-fal-request-id': job.id });
  }

  private store(job: FalJob): void {
    this.jobs.set(job.id, job);
    const oldest = this.jobs.keys().next().value;
    if (this.jobs.size > MAX_JOBS && oldest !== undefined) this.jobs.delete(oldest);
  }

  /** The job waits in the queue for half of the latency and is in progress for the other half. */
  private async processJob(job: FalJob, milliseconds: number): Promise<void> {
    if (milliseconds > 0) {
      await delay(milliseconds / 2, undefined, { ref: false });
      if (!this.jobs.has(job.id)) return;
      job.state = 'IN_PROGRESS';
      await delay(milliseconds / 2, undefined, { ref: false });
      if (!this.jobs.has(job.id)) return;
    }
    job.state = 'COMPLETED';
    chargeJob(job, this.bill);
    const times = job.fault === 'duplicate' ? DUPLICATE_REPORTS : 1;
    await Promise.all(Array.from({ length: times }, () => this.report(job)));
  }

  private async report(job: FalJob): Promise<void> {
    const { id: requestId, webhookUrl: url } = job;
    if (url === undefined) return;
    const failure = findFailure(job);
    if (!failure) return this.webhooks.send({ requestId, url, status: 'OK', payload: toResult(job) });
    const error = `Invalid status code: ${failure.status}`;
    await this.webhooks.send({ requestId, url, status: 'ERROR', error, payload: failure.body });
  }

  /** Sends two webhooks before the request is accepted: a forged one, and a signed one without a result. */
  private async reportTooEarly({ id: requestId, webhookUrl: url }: FalJob): Promise<void> {
    if (url === undefined) return;
    const error = 'Invalid status code: 500';
    await this.webhooks.sendForged({ requestId, url, status: 'ERROR', error, payload: { detail: 'Forged' } });
    await this.webhooks.send({ requestId, url, status: 'OK', payload: null });
  }

  private getJob(call: Call) {
    assertKey(call);
    const [, , id = '', what] = REQUEST.exec(call.parameter) ?? [];
    const job = this.jobs.get(id);
    if (!job) throw new HttpError(404, { detail: 'Request not found' });
    return { job, what };
  }

  /** Only a queued request is cancelled. One that is in progress is finished and billed. */
  private cancel(call: Call): void {
    const { job, what } = this.getJob(call);
    if (what !== 'cancel') throw new HttpError(405, { detail: 'Method Not Allowed' });
    if (job.state === 'COMPLETED') throw new HttpError(400, { status: 'ALREADY_COMPLETED' });
    if (job.state === 'IN_QUEUE') this.jobs.delete(job.id);
    call.sendJson(202, { status: 'CANCELLATION_REQUESTED' });
  }

  private async handleGet(call: Call): Promise<void> {
    const { job, what } = this.getJob(call);
    if (what === 'cancel') throw new HttpError(405, { detail: 'Method Not Allowed' });
    if (what === 'status/stream') return this.streamStatus(call, job);
    const hasLogs = call.query.get('logs') === '1';
    if (what === 'status') return call.sendJson(job.state === 'COMPLETED' ? 200 : 202, toStatusJson(job, hasLogs));
    if (job.state !== 'COMPLETED') throw new HttpError(400, { detail: 'Request is still in progress' });
    const failure = findFailure(job);
    const headers = { 'x-fal-request-id': job.id };
    if (failure) throw new HttpError(failure.status, failure.body, { ...failure.headers, ...headers });
    call.sendJson(200, toResult(job), headers);
  }

  private async streamStatus({ response }: Call, job: FalJob): Promise<void> {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let reportedState = ''; !response.destroyed; await delay(POLL_INTERVAL_MS, undefined, { ref: false })) {
      if (reportedState !== job.state) response.write(`data: ${JSON.stringify(toStatusJson(job, true))}\n\n`);
      reportedState = job.state;
      if (reportedState === 'COMPLETED') return void response.end();
    }
  }

  private async sendFile(call: Call): Promise<void> {
    const [, id = '', index] = /^(.{36})-(\d+)\.\w+$/.exec(call.parameter) ?? [];
    const job = this.jobs.get(id);
    if (job?.state !== 'COMPLETED' || findFailure(job)) throw new HttpError(404, { detail: 'Not Found' });
    await sendFile(call, createFile(job, Number(index)), job.fault);
  }
}

function tryParse<T>(read: () => T): T | HttpError {
  try {
    return read();
  } catch (error) {
    if (error instanceof HttpError) return error;
    throw error;
  }
}

function toUrlFields({ host, model, id }: FalJob) {
  const [owner, application] = model.split('/');
  const url = `http://${host}/fal/${owner}/${application}/requests/${id}`;
  return { response_url: url, status_url: `${url}/status`, cancel_url: `${url}/cancel` };
}

function toStatusJson(job: FalJob, hasLogs: boolean) {
  const { state, id: request_id } = job;
  const head = { status: state, request_id, ...toUrlFields(job) };
  if (state === 'IN_QUEUE') return { ...head, queue_position: 0 };
  const line = { message: 'Working', level: 'INFO', source: 'USER', timestamp: new Date().toISOString() };
  const logs = hasLogs ? [line] : null;
  if (state === 'IN_PROGRESS') return { ...head, logs };
  const { status, body } = findFailure(job) ?? {};
  const { error_type } = (body ?? {}) as { readonly error_type?: string };
  const failed =
    status === undefined ? {} : { error: `Invalid status code: ${status}`, ...(error_type ? { error_type } : {}) };
  return { ...head, logs, metrics: { inference_time: 0.1 }, ...failed };
}

function createFaultError(kind: keyof typeof STATUS): HttpError {
  const error_type = ERROR_TYPES[kind];
  const headers = { 'x-fal-error-type': error_type, ...(kind === '429' ? { 'retry-after': '1' } : {}) };
  return new HttpError(STATUS[kind], { detail: 'As the sandbox was instructed', error_type }, headers);
}

function assertKey({ request, parameter }: Call): void {
  if (/^Key \S/.test(request.headers.authorization ?? '')) return;
  throw new HttpError(401, { detail: `Cannot access application '${parameter}'. Authentication is required.` });
}
