/**
 * Counts tokens in worker threads, never on the event loop. A text is sent in small tasks. Each owner has at most one
 * task in the queue of the threads, so the tasks of all owners alternate, however much text one of them has.
 */
import os from 'node:os';
import path from 'node:path';
import { Piscina } from 'piscina';
import { UpstreamError } from '../errors.ts';
import { OwnerQueue } from '../owner-queue.ts';
import type { TextTokens, TokenCountTask, TokenEncoding } from './token-worker.ts';
import { isTokenBoundary, splitForTokenizer } from './tokenizer.ts';

/** Maximum characters of one task. Counting them takes 0.3 ms for English, and 18 ms for random ideographs. */
const MAX_TASK_CHARACTERS = 8_192;
/** Maximum texts of one task, so that many short texts make no long message. */
const MAX_TASK_TEXTS = 256;
/** Maximum number of threads. Each has its own tables of the tokenizers. */
const MAX_THREADS = 2;
/** The threads get CPU time that the event loop does not need. */
const NICE_INCREMENT = 10;
/** Maximum characters that wait for being counted: of one owner, which is a body or two, and of all owners. */
const MAX_WAITING_OF_OWNER = 48 * 1024 * 1024;
const MAX_WAITING = 192 * 1024 * 1024;
const RETRY_AFTER_SECONDS = 2;
/** Splitting a text within a token adds at most this many tokens to its count. */
const EXTRA_TOKENS_PER_SPLIT = 2;

const WORKER_FILE = path.join(import.meta.dirname, `token-worker${path.extname(import.meta.filename)}`);

export interface TokenCountOptions {
  /** `o200k_base` by default. */
  readonly encoding?: TokenEncoding;
  /**
   * Counting ends with the first text that certainly has more tokens: tokens that splitting may have added are
   * subtracted. The text may then be counted only in part.
   */
  readonly limit?: number;
  /** Counts even if too much waits: for usage that must be charged. */
  readonly isRequired?: boolean;
}

/** The threads of all counters, because each thread has its own tables of the tokenizers. They end with the process. */
let sharedThreads: Piscina<TokenCountTask, readonly TextTokens[]> | undefined;

/** Counts the tokens of a text for a fixed owner. */
export type CountText = (text: string) => Promise<number>;

export class TokenCounter {
  private readonly owners = new OwnerQueue();
  private readonly waitingByOwner = new Map<string, number>();
  private waiting = 0;

  /**
   * Counts the tokens of one text.
   * @param owner who waits for its own tasks only: a payer, or the address of an anonymous caller
   * @throws UpstreamError with `not_served` if too much waits, unless the count is required
   */
  async count(owner: string, text: string, options?: TokenCountOptions): Promise<number> {
    return (await this.countEach(owner, [text], options))[0] ?? 0;
  }

  /** Returns a function that counts required texts of one owner. */
  createRequiredCount(owner: string): CountText {
    return (text) => this.count(owner, text, { isRequired: true });
  }

  /**
   * Counts the tokens of each text.
   * @returns the counts in the order of the texts. With a limit, the last count is the only one that may exceed it
   * @throws UpstreamError with `not_served` if too much waits, unless the counts are required
   */
  async countEach(
    owner: string,
    texts: readonly string[],
    { encoding = 'o200k_base', limit, isRequired = false }: TokenCountOptions = {},
  ): Promise<readonly number[]> {
    const characters = texts.reduce((sum, text) => sum + text.length, 0);
    if (!isRequired) this.assertCapacity(owner, characters);
    this.addWaiting(owner, characters);
    try {
      const counts = new Array<number>(texts.length).fill(0);
      for (const chunks of groupIntoTasks(texts)) {
        const task = { encoding, texts: chunks.map(({ text }) => text) };
        const results = await this.owners.run(owner, () => this.threads.run(task));
        for (const [i, { index, isSplit }] of chunks.entries()) {
          const { tokens, splits } = results[i] as TextTokens;
          const extraTokens = limit === undefined ? 0 : (splits + Number(isSplit)) * EXTRA_TOKENS_PER_SPLIT;
          counts[index] = (counts[index] ?? 0) + tokens - extraTokens;
          if (limit !== undefined && counts[index] > limit) return counts.slice(0, index + 1);
        }
      }
      return counts;
    } finally {
      this.addWaiting(owner, -characters);
    }
  }

  private assertCapacity(owner: string, characters: number): void {
    const waitingOfOwner = this.waitingByOwner.get(owner) ?? 0;
    if (waitingOfOwner + characters <= MAX_WAITING_OF_OWNER && this.waiting + characters <= MAX_WAITING) return;
    const message = 'Too many tokens are waiting to be counted; retry in a moment';
    throw new UpstreamError('not_served', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
  }

  private addWaiting(owner: string, characters: number): void {
    this.waiting += characters;
    const ofOwner = (this.waitingByOwner.get(owner) ?? 0) + characters;
    if (ofOwner === 0) this.waitingByOwner.delete(owner);
    else this.waitingByOwner.set(owner, ofOwner);
  }

  private get threads(): Piscina<TokenCountTask, readonly TextTokens[]> {
    sharedThreads ??= new Piscina({
      filename: WORKER_FILE,
      minThreads: 1,
      maxThreads: Math.min(Math.max(os.availableParallelism() - 1, 1), MAX_THREADS),
      idleTimeout: Number.POSITIVE_INFINITY,
      niceIncrement: NICE_INCREMENT,
    });
    return sharedThreads;
  }
}

/** A text or a part of one. */
interface TextChunk {
  /** Index of the text. */
  readonly index: number;
  readonly text: string;
  /** The text continues in the next chunk, perhaps within a token. */
  readonly isSplit: boolean;
}

function* groupIntoTasks(texts: readonly string[]): Generator<readonly TextChunk[]> {
  let [chunks, characters]: [TextChunk[], number] = [[], 0];
  for (const chunk of splitIntoChunks(texts)) {
    const isFull = characters + chunk.text.length > MAX_TASK_CHARACTERS || chunks.length === MAX_TASK_TEXTS;
    if (isFull && chunks.length > 0) {
      yield chunks;
      [chunks, characters] = [[], 0];
    }
    chunks.push(chunk);
    characters += chunk.text.length;
  }
  if (chunks.length > 0) yield chunks;
}

function* splitIntoChunks(texts: readonly string[]): Generator<TextChunk> {
  for (const [index, complete] of texts.entries()) {
    let end = 0;
    for (const text of splitForTokenizer(complete, MAX_TASK_CHARACTERS)) {
      end += text.length;
      yield { index, text, isSplit: end < complete.length && !isTokenBoundary(complete, end) };
    }
  }
}
