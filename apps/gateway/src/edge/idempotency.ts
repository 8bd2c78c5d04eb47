/**
 * `Idempotency-Key`: the same request with the same key is served once, and answered as often as it comes.
 *
 * A key is claimed before money is held, in one insert, for a few seconds. Once the money is held the claim is confirmed,
 * for as long as the hold lives, and only then is anything called that costs something. The answer is kept before its end
 * is sent. Where a claim has no answer because its gateway died: one that was not confirmed cost nothing, and of one that
 * was, the account's facts say whether its hold was charged. Then it is not served again.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Accounts, type Caller, type CallLimits, type Clock, type Secrets, type WatchedPayers } from '#application';
import { type Runtime, StoreUnavailable, startedBy } from '#kernel';
import type { Authenticator } from './authenticator.ts';
import type { BooksReader } from './books-reader.ts';
import { IdempotencyConflict, InvalidRequest } from './errors.ts';
import { type Answer, type Claim, type Earlier, KeptAnswers } from './kept-answers.ts';
import { Recording, record } from './recording.ts';

const PRINTABLE = /^[\x20-\x7e]{1,255}$/;
const RETRY_AFTER_SECONDS = 2;
const SWEEP_EVERY_MS = 60_000;
/** With it a confirmed claim is respected for as long as its hold, so a request that died frees both at the same time. */
const LEASE_MARGIN_MS = 60_000;

export interface IdempotencyPorts {
  readonly kept: KeptAnswers;
  readonly books: BooksReader;
  readonly accounts: Accounts;
  readonly payers: WatchedPayers;
  readonly authenticator: Authenticator;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly alarm: Runtime['alarm'];
}

export function leaseOf({ totalTimeoutMs, drainTimeoutMs }: CallLimits): number {
  return totalTimeoutMs + drainTimeoutMs + LEASE_MARGIN_MS;
}

export class Idempotency {
  private readonly recordings = new Set<Promise<void>>();
  private readonly sweep: NodeJS.Timeout;

  constructor(private readonly ports: IdempotencyPorts) {
    const { kept, alarm } = ports;
    const removeExpired = () =>
      void kept.removeExpired().catch((error) => alarm('expired answers could not be removed; trying again', error));
    this.sweep = setInterval(removeExpired, SWEEP_EVERY_MS).unref();
  }

  /** Waits until every answer that has ended is kept. */
  async close(): Promise<void> {
    clearInterval(this.sweep);
    await Promise.all(this.recordings);
  }

  /**
   * For controllers that serve something paid, once the request is known to be well-formed and before anything is done: true
   * when it has been answered by a replay. From here on `request.id` is the id to serve it under.
   * @throws IdempotencyConflict when the key is another request's, or its request runs, or its answer is lost
   */
  answered(request: FastifyRequest, reply: FastifyReply, caller: Caller): boolean | Promise<boolean> {
    const key = request.headers['idempotency-key'];
    return key === undefined ? false : this.answeredBefore(String(key), request, reply, caller);
  }

  private async answeredBefore(key: string, request: FastifyRequest, reply: FastifyReply, caller: Caller) {
    if (!PRINTABLE.test(key)) {
      throw new InvalidRequest('Idempotency-Key must be 1 to 255 printable ASCII characters', 'Idempotency-Key');
    }
    const { books, kept } = this.ports;
    const { accountId } = caller;
    const revision = await books.revisionOf(accountId);
    if (revision === undefined) return false; // there is no such account, which is for the hold to say
    const { hash, about } = this.hashes(key, request);
    const claim: Claim = { accountId, key: hash, request: about, requestId: request.id, revision, owner: request.id };
    const first = await available(kept.claim(claim));
    return first ? this.record(claim, reply) : this.again(claim, request, reply);
  }

  /** Neither is stored as it is, or could be guessed by its hash. Both paths of an endpoint are one. */
  private hashes(key: string, { url, body }: FastifyRequest) {
    const { secrets } = this.ports;
    const about = `${url.replace(/^\/v1(?=\/)/, '')}\n${JSON.stringify(body)}`;
    return { hash: secrets.hash(`idempotency key ${key}`), about: secrets.hash(`idempotent request ${about}`) };
  }

  private async again(claim: Claim, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    const { authenticator, kept } = this.ports;
    // A hold would see whether the credential is still good; nothing is held here.
    await authenticator.reader(request);
    const earlier = await available(kept.find(claim));
    if (!earlier) throw inProgress(); // it has just ended without being charged
    if (earlier.request !== claim.request) throw reused();
    if (earlier.answer) {
      replay(await kept.open(earlier.answer), reply);
      return true;
    }
    if (earlier.lost) throw lost();
    if (earlier.running) throw inProgress();
    if (earlier.held) await this.assertUnpaid(earlier);
    if (!(await available(kept.takeOver(earlier, claim)))) throw inProgress();
    return this.record(claim, reply);
  }

  /**
   * What became of the hold of a request whose gateway has died after it had made it.
   * @throws IdempotencyConflict unless it ended without being charged
   */
  private async assertUnpaid(earlier: Earlier): Promise<void> {
    const { accounts, books, clock, kept } = this.ports;
    const { accountId, requestId, revision } = earlier;
    await accounts.run(accountId, { type: 'ExpireHolds', data: { at: clock.now() } }, startedBy('gateway', requestId));
    const hold = await books.holdOf(accountId, requestId, revision);
    if (hold === 'charged') {
      await available(kept.lose(earlier));
      throw lost();
    }
    if (hold !== 'unpaid') throw inProgress();
  }

  private record(claim: Claim, reply: FastifyReply): false {
    const { payers, kept } = this.ports;
    payers.watch(claim.requestId, async () => {
      // A request that was taken for dead while its money was being held is not served: another one is.
      if (!(await available(kept.confirm(claim)))) throw inProgress();
    });
    const recording = new Recording(reply, (answer) => {
      const ended = this.ended(claim, answer).finally(() => this.recordings.delete(ended));
      this.recordings.add(ended);
      return ended;
    });
    record(reply, recording);
    return false;
  }

  /** An answer that cannot be kept is delivered all the same: the next request gets 409, that it is lost. */
  private async ended(claim: Claim, answer: Answer | undefined): Promise<void> {
    const { alarm, payers, kept } = this.ports;
    try {
      switch (payers.outcome(claim.requestId)) {
        case 'charged':
          await (answer ? kept.keep(claim, answer) : kept.lose(claim));
          break;
        case 'open':
          await kept.giveUp(claim);
          break;
        default:
          await kept.forget(claim);
      }
    } catch (error) {
      alarm('an answer could not be kept', error);
    }
  }
}

function replay({ status, headers, body }: Answer, reply: FastifyReply): void {
  reply.headers({ ...headers, 'idempotent-replayed': 'true' });
  reply.status(status).send(body);
}

/** Without knowing whose a key is nothing can be served. */
async function available<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    throw new StoreUnavailable('idempotency keys cannot be looked up', { cause });
  }
}

function reused(): IdempotencyConflict {
  return new IdempotencyConflict('idempotency_key_reused', 'This Idempotency-Key was used with another request');
}

function inProgress(): IdempotencyConflict {
  const message = 'A request with this Idempotency-Key is in progress; its answer can be had when it has ended';
  return new IdempotencyConflict('idempotency_in_progress', message, RETRY_AFTER_SECONDS);
}

function lost(): IdempotencyConflict {
  const message =
    'The request with this Idempotency-Key was charged, but its answer was lost; it is not served again with this key';
  return new IdempotencyConflict('idempotency_answer_lost', message);
}
