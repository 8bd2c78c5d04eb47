/** Files that are written into a request as base64, which has them in memory several times while it is sent. */
import { asFailure } from '#application';

/** Of the files themselves, at once: some five times as much in memory. */
const MOST_BYTES = 32 * 1024 * 1024;

interface Waiting {
  readonly share: number;
  admit(): void;
}

/** Lets requests be sent in their turn, as long as what they carry is not too much together. */
export class Inlined {
  private used = 0;
  private readonly queue: Waiting[] = [];

  constructor(private readonly most = MOST_BYTES) {}

  /** @param send puts the files into a request, and resolves when that is not needed any more */
  async during<A>(files: readonly Blob[], signal: AbortSignal, send: () => Promise<A>): Promise<A> {
    const bytes = files.reduce((sum, { size }) => sum + size, 0);
    const share = Math.min(bytes, this.most);
    if (share === 0) return send();
    await this.turn(share, signal);
    try {
      return await send();
    } finally {
      this.used -= share;
      this.next();
    }
  }

  private turn(share: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = {
        share,
        admit: () => {
          signal.removeEventListener('abort', leave);
          resolve();
        },
      };
      const leave = () => {
        const at = this.queue.indexOf(waiting);
        if (at >= 0) this.queue.splice(at, 1);
        reject(asFailure(signal.reason));
        this.next();
      };
      if (signal.aborted) return reject(asFailure(signal.reason));
      signal.addEventListener('abort', leave, { once: true });
      this.queue.push(waiting);
      this.next();
    });
  }

  private next(): void {
    for (let [first] = this.queue; first && this.used + first.share <= this.most; [first] = this.queue) {
      this.queue.shift();
      this.used += first.share;
      first.admit();
    }
  }
}

export async function base64Of(file: Blob): Promise<string> {
  return Buffer.from(await file.arrayBuffer()).toString('base64');
}
