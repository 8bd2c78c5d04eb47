/** Writes the encrypted responses of an enclave. Each event of a stream is written as its own frame. */
import type { ServerResponse } from 'node:http';
import { RESPONSE_NONCE_HEADER, type ResponseSealer } from '#ehbp';
import { invalidRequestError } from '../openai/errors.ts';
import {
  type Frame,
  generateFor,
  type OutputWriter,
  type ResponseDelivery,
  type SandboxUsage,
} from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';
import type { Call, HttpError } from '../router.ts';
import { createCompleteScript, createStreamScript, type Script } from './script.ts';

const USAGE = 'X-Tinfoil-Usage-Metrics';
const MAX_REPLAYED_BYTES = 1024 * 1024;

/** For replays: the last complete response that had no fault and at most MAX_REPLAYED_BYTES. */
export interface ReplayBuffer {
  last: { readonly nonce: string; readonly ciphertext: Buffer } | undefined;
}

interface EncryptedWriterOptions {
  readonly sealer: ResponseSealer;
  readonly replayBuffer: ReplayBuffer;
  /** Whether the client requested the usage in plaintext. */
  readonly isUsageRequested: boolean;
  /** Text of the last user message, which the fault `plaintext_error` leaks. */
  readonly prompt: string;
}

interface ResponseHead {
  readonly headers: Readonly<Record<string, string>>;
  readonly chunkDelay: number;
  /** Whether the usage follows as a trailer. */
  readonly trailer: boolean;
}

/** Creates the writer of one response. */
export function createEncryptedWriter(terms: EncryptedWriterOptions): OutputWriter {
  const includesUsage = (fault: Fault | undefined) => terms.isUsageRequested && fault !== 'no_usage';
  return {
    writeComplete(call, json, visible, delivery) {
      const script = createCompleteScript(json, visible, delivery.fault);
      const usage = delivery.usage(script.frames.reduce((sum, { tokens }) => sum + tokens, 0));
      const headers = {
        'content-type': 'application/json',
        ...(includesUsage(delivery.fault) ? { [USAGE]: formatUsage(usage, delivery.fault) } : {}),
      };
      return new EncryptedResponseSender(call, terms, delivery).send(
        { headers, chunkDelay: 0, trailer: false },
        script,
      );
    },
    writeStream(call, events, chunkDelay, delivery) {
      const trailer = includesUsage(delivery.fault);
      const headers = { 'content-type': 'text/event-stream; charset=utf-8', ...(trailer ? { trailer: USAGE } : {}) };
      const script = createStreamScript(events, delivery.fault);
      return new EncryptedResponseSender(call, terms, delivery).send({ headers, chunkDelay, trailer }, script);
    },
  };
}

/** Encrypts an error and sends it. */
export function sendEncryptedError(
  { response }: Call,
  sealer: ResponseSealer,
  { status, body, headers }: HttpError,
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers, [RESPONSE_NONCE_HEADER]: sealer.nonce });
  response.end(sealer.seal(Buffer.from(JSON.stringify(body))));
}

class EncryptedResponseSender {
  private readonly call: Call;
  private readonly terms: EncryptedWriterOptions;
  private readonly delivery: ResponseDelivery;
  private readonly sent: Uint8Array[] = [];
  private sentBytes = 0;

  constructor(call: Call, terms: EncryptedWriterOptions, delivery: ResponseDelivery) {
    this.call = call;
    this.terms = terms;
    this.delivery = delivery;
  }

  /**
   * Sends the frames, stops if the client disconnects, and bills the generated tokens. With `malformed` or
   * `plaintext_error`, nothing is billed.
   */
  async send(head: ResponseHead, { frames, incomplete }: Script): Promise<void> {
    const { fault, headers, charge, usage } = this.delivery;
    const { response, request } = this.call;
    if (fault === 'plaintext_error') return this.leakPrompt();
    const nonce = this.selectNonce();
    response.writeHead(200, {
      ...headers,
      ...head.headers,
      ...(nonce === undefined ? {} : { [RESPONSE_NONCE_HEADER]: nonce }),
    });
    const delivered = await this.deliver(frames, head.chunkDelay);
    if (fault !== 'malformed') charge(delivered);
    if (response.destroyed) return;
    const rest = incomplete === undefined ? Buffer.alloc(0) : this.encodeEvent(incomplete).subarray(0, -1);
    if (fault === 'cut') return void response.write(rest, () => request.socket.destroy());
    if (rest.length > 0) response.write(rest);
    if (head.trailer) response.addTrailers({ [USAGE]: formatUsage(usage(delivered), fault) });
    response.end();
    this.saveForReplay();
  }

  /**
   * Generation does not wait for a client that does not read, and stops when the client disconnects. Without a delay
   * between chunks everything is generated at once.
   * @returns the number of visible tokens that were generated
   */
  private async deliver(frames: readonly Frame[], chunkDelay: number): Promise<number> {
    const { response } = this.call;
    const { fault } = this.delivery;
    const replay = fault === 'replayed' ? this.terms.replayBuffer.last?.ciphertext : undefined;
    if (replay) response.write(replay);
    let delivered = 0;
    for (const [at, { event, tokens }] of frames.entries()) {
      if (chunkDelay > 0 && tokens > 0 && delivered > 0) {
        const part = await generateFor(chunkDelay, response);
        if (part < 1) return delivered + Math.floor(part * tokens);
      }
      delivered += tokens;
      if (response.destroyed) continue;
      if (replay) continue;
      const bytes = this.encodeEvent(event);
      if (fault === 'flipped' && at === Math.floor(frames.length / 2)) flipLastBit(bytes);
      if (!response.write(bytes) && chunkDelay === 0 && !response.destroyed) await waitForDrain(response);
    }
    return delivered;
  }

  /** @throws HttpError if the fault is a replay and there is no response to replay */
  private selectNonce(): string | undefined {
    const { fault } = this.delivery;
    if (fault === 'plaintext') return undefined;
    if (fault !== 'replayed' && fault !== 'replayed_nonce') return this.terms.sealer.nonce;
    const { last } = this.terms.replayBuffer;
    if (!last)
      throw invalidRequestError(400, 'There is no earlier response to replay.', 'messages', 'sandbox_directive');
    return last.nonce;
  }

  private encodeEvent(event: string): Uint8Array {
    const plaintext = Buffer.from(event);
    const bytes = this.delivery.fault === 'plaintext' ? plaintext : this.terms.sealer.seal(plaintext);
    this.sentBytes += bytes.length;
    if (this.sentBytes <= MAX_REPLAYED_BYTES) this.sent.push(bytes);
    return bytes;
  }

  private saveForReplay(): void {
    if (this.delivery.fault !== undefined || this.sentBytes > MAX_REPLAYED_BYTES) return;
    this.terms.replayBuffer.last = { nonce: this.terms.sealer.nonce, ciphertext: Buffer.concat(this.sent) };
  }

  private leakPrompt(): void {
    const message = `The response failed for: ${this.terms.prompt}`;
    this.call.sendJson(500, { error: { message, type: 'server_error', param: null, code: null } });
  }
}

/**
 * Formats the usage for the header or trailer. `overstated` reports 1,000 times the usage, and `understated` one prompt
 * token and one completion token.
 */
function formatUsage(usage: SandboxUsage, fault: Fault | undefined): string {
  const multiplyUsage = (factor: number) => ({ prompt: usage.prompt * factor, completion: usage.completion * factor });
  const reported =
    fault === 'overstated' ? multiplyUsage(1_000) : fault === 'understated' ? { prompt: 1, completion: 1 } : usage;
  return `prompt=${reported.prompt},completion=${reported.completion},total=${reported.prompt + reported.completion}`;
}

function flipLastBit(bytes: Uint8Array): void {
  bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
}

/** Waits until the connection accepts data again or is closed. */
function waitForDrain(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.once('drain', done).once('close', done);
  });
}
