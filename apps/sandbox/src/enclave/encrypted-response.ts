/** How an enclave hands over its answers: each event of a stream is a frame, and goes as soon as it is made. */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { RESPONSE_NONCE_HEADER, type ResponseSealer } from '#ehbp';
import { refusal } from '../openai/errors.ts';
import { type Frame, type Outlet, type ResponseDelivery, type SandboxUsage } from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';
import type { Call, Refusal } from '../router.ts';
import { type Script, scriptOfStream, scriptOfWhole } from './script.ts';

const USAGE = 'X-Tinfoil-Usage-Metrics';
const MAX_REPLAYED_BYTES = 1024 * 1024;

/** What an enclave has for a replay: the last answer that was not too long. */
export interface Replayed {
  last: { readonly nonce: string; readonly wire: Buffer } | undefined;
}

interface Terms {
  readonly sealer: ResponseSealer;
  readonly replayed: Replayed;
  /** Whether the usage is asked for, outside of what is encrypted. */
  readonly wantsUsage: boolean;
  /** Text of the user, which an error in plaintext gives away. */
  readonly prompt: string;
}

interface Head {
  readonly headers: Readonly<Record<string, string>>;
  readonly chunkDelay: number;
  /** Whether the usage follows the answer. */
  readonly trailer: boolean;
}

/** @returns an outlet for one answer */
export function sealedOutlet(terms: Terms): Outlet {
  const reports = (fault: Fault | undefined) => terms.wantsUsage && fault !== 'no_usage';
  return {
    whole(call, json, visible, delivery) {
      const script = scriptOfWhole(json, visible, delivery.fault);
      const usage = delivery.usage(script.frames.reduce((sum, { tokens }) => sum + tokens, 0));
      const headers = {
        'content-type': 'application/json',
        ...(reports(delivery.fault) ? { [USAGE]: written(usage, delivery.fault) } : {}),
      };
      return new SealedAnswer(call, terms, delivery).send({ headers, chunkDelay: 0, trailer: false }, script);
    },
    stream(call, events, chunkDelay, delivery) {
      const trailer = reports(delivery.fault);
      const headers = { 'content-type': 'text/event-stream; charset=utf-8', ...(trailer ? { trailer: USAGE } : {}) };
      const script = scriptOfStream(events, delivery.fault);
      return new SealedAnswer(call, terms, delivery).send({ headers, chunkDelay, trailer }, script);
    },
  };
}

/** An error is encrypted as an answer is. */
export function refuseSealed({ response }: Call, sealer: ResponseSealer, { status, body, headers }: Refusal): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers, [RESPONSE_NONCE_HEADER]: sealer.nonce });
  response.end(sealer.seal(Buffer.from(JSON.stringify(body))));
}

class SealedAnswer {
  private readonly call: Call;
  private readonly terms: Terms;
  private readonly delivery: ResponseDelivery;
  private readonly sent: Uint8Array[] = [];
  private sentBytes = 0;

  constructor(call: Call, terms: Terms, delivery: ResponseDelivery) {
    this.call = call;
    this.terms = terms;
    this.delivery = delivery;
  }

  /** Sends until the client has gone, and bills what was made until then. */
  async send(head: Head, { frames, incomplete }: Script): Promise<void> {
    const { fault, headers, charge, usage } = this.delivery;
    const { response, request } = this.call;
    if (fault === 'plaintext_error') return this.giveAway();
    const nonce = this.nonceToTell();
    response.writeHead(200, {
      ...headers,
      ...head.headers,
      ...(nonce === undefined ? {} : { [RESPONSE_NONCE_HEADER]: nonce }),
    });
    const delivered = await this.deliver(frames, head.chunkDelay);
    if (fault !== 'malformed') charge(delivered);
    if (response.destroyed) return;
    const rest = incomplete === undefined ? Buffer.alloc(0) : this.wireOf(incomplete).subarray(0, -1);
    if (fault === 'cut') return void response.write(rest, () => request.socket.destroy());
    if (rest.length > 0) response.write(rest);
    if (head.trailer) response.addTrailers({ [USAGE]: written(usage(delivered), fault) });
    response.end();
    this.remember();
  }

  /** @returns how many tokens were in it */
  private async deliver(frames: readonly Frame[], chunkDelay: number): Promise<number> {
    const { response } = this.call;
    const { fault } = this.delivery;
    const replay = fault === 'replayed' ? this.terms.replayed.last?.wire : undefined;
    if (replay) response.write(replay);
    let delivered = 0;
    for (const [at, { event, tokens }] of frames.entries()) {
      if (chunkDelay > 0 && tokens > 0 && delivered > 0) await delay(chunkDelay, undefined, { ref: false });
      if (response.destroyed) break;
      delivered += tokens;
      if (replay) continue;
      const wire = this.wireOf(event);
      if (fault === 'flipped' && at === Math.floor(frames.length / 2)) flipLastBit(wire);
      if (!response.write(wire) && !response.destroyed) await drained(response);
    }
    return delivered;
  }

  /** @throws Refusal when there is nothing to replay */
  private nonceToTell(): string | undefined {
    const { fault } = this.delivery;
    if (fault === 'plaintext') return undefined;
    if (fault !== 'replayed' && fault !== 'replayed_nonce') return this.terms.sealer.nonce;
    const { last } = this.terms.replayed;
    if (!last)
      throw refusal(400, 'There is no earlier answer that could be replayed.', 'messages', 'sandbox_directive');
    return last.nonce;
  }

  private wireOf(event: string): Uint8Array {
    const plaintext = Buffer.from(event);
    const wire = this.delivery.fault === 'plaintext' ? plaintext : this.terms.sealer.seal(plaintext);
    this.sentBytes += wire.length;
    if (this.sentBytes <= MAX_REPLAYED_BYTES) this.sent.push(wire);
    return wire;
  }

  private remember(): void {
    if (this.delivery.fault !== undefined || this.sentBytes > MAX_REPLAYED_BYTES) return;
    this.terms.replayed.last = { nonce: this.terms.sealer.nonce, wire: Buffer.concat(this.sent) };
  }

  private giveAway(): void {
    const message = `The answer failed for: ${this.terms.prompt}`;
    this.call.json(500, { error: { message, type: 'server_error', param: null, code: null } });
  }
}

/** As the header and the trailer have it. A lie is 1,000 times as much, or a token of each. */
function written(usage: SandboxUsage, fault: Fault | undefined): string {
  const times = (factor: number) => ({ prompt: usage.prompt * factor, completion: usage.completion * factor });
  const told = fault === 'overstated' ? times(1_000) : fault === 'understated' ? { prompt: 1, completion: 1 } : usage;
  return `prompt=${told.prompt},completion=${told.completion},total=${told.prompt + told.completion}`;
}

function flipLastBit(wire: Uint8Array): void {
  wire[wire.length - 1] = (wire.at(-1) as number) ^ 1;
}

/** Until there is room again, or nobody who reads. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.once('drain', done).once('close', done);
  });
}
