/** Bodies as a sequence of frames: the length of the ciphertext as a big-endian integer of 32 bits, then the ciphertext. */
import { EhbpError } from './protocol.ts';

/** A body in pieces of any size, whether they arrive or are there. */
export type BodyChunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** What AES-GCM adds to a plaintext. */
export const TAG_BYTES = 16;
/** The longest ciphertext of a frame that is taken. */
export const MAX_FRAME_BYTES = 16 * 1024 * 1024 + TAG_BYTES;
/** The most plaintext that we put into a frame: what has arrived of it can be read only when all of it has. */
const MAX_PIECE_BYTES = 64 * 1024;
const LENGTH_BYTES = 4;

/** Splits what is encrypted into the plaintexts of frames; nothing has no frame. */
export function* splitIntoFrames(plaintext: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < plaintext.length; at += MAX_PIECE_BYTES) yield plaintext.subarray(at, at + MAX_PIECE_BYTES);
}

/** @param ciphertext in parts that follow each other */
export function encodeFrame(...ciphertext: readonly Uint8Array[]): Uint8Array {
  const length = ciphertext.reduce((sum, part) => sum + part.length, 0);
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + length);
  let at = frame.writeUInt32BE(length);
  for (const part of ciphertext) {
    frame.set(part, at);
    at += part.length;
  }
  return frame;
}

/** Follows a body, which comes in pieces of any size, from frame to frame. Frames without ciphertext are skipped. */
abstract class FrameFollower {
  private length = 0;
  private lengthBytes = 0;
  protected left = 0;

  /** Whether the last frame that began is complete. */
  get isAtBorder(): boolean {
    return this.left === 0 && this.lengthBytes === 0;
  }

  /**
   * Takes what belongs together of these bytes: what there is of a frame, or a byte of its length.
   * @param at where the bytes that were not taken yet begin
   * @returns where they begin now
   * @throws EhbpError for a length that no frame has
   */
  protected step(bytes: Uint8Array, at: number): number {
    if (this.left > 0) {
      const end = Math.min(at + this.left, bytes.length);
      this.left -= end - at;
      this.passed(bytes, at, end);
      return end;
    }
    this.length = this.length * 256 + (bytes[at] as number);
    if (++this.lengthBytes === LENGTH_BYTES) this.begin();
    return at + 1;
  }

  private begin(): void {
    const { length } = this;
    this.length = 0;
    this.lengthBytes = 0;
    if (length === 0) return;
    if (length < TAG_BYTES) throw new EhbpError('malformed', 'a frame is shorter than its tag');
    if (length > MAX_FRAME_BYTES) throw new EhbpError('malformed', `a frame is longer than ${MAX_FRAME_BYTES} bytes`);
    this.left = length;
    this.began(length);
  }

  protected abstract began(length: number): void;
  /** These bytes belong to the frame that began last. */
  protected abstract passed(bytes: Uint8Array, from: number, to: number): void;
}

/** How long the frames of a body are, for those who cannot read it. */
export class FrameSizes extends FrameFollower {
  private sizes: number[] = [];

  /**
   * Takes the next bytes of the body.
   * @returns the lengths of the ciphertexts of those frames whose length is known now and was not before
   * @throws EhbpError for a length that no frame has
   */
  add(bytes: Uint8Array): readonly number[] {
    this.sizes = [];
    for (let at = 0; at < bytes.length; ) at = this.step(bytes, at);
    return this.sizes;
  }

  /** How many bytes of the last frame are still to come: a length is only what was announced. */
  get missing(): number {
    return this.left;
  }

  protected override began(length: number): void {
    this.sizes.push(length);
  }

  protected override passed(): void {}
}

/** Takes a body apart into the ciphertexts of its frames; it keeps no more than has arrived of one frame. */
export class FrameReader extends FrameFollower {
  private wanted = 0;
  private gathered = Buffer.alloc(0);
  private size = 0;
  private complete: Uint8Array | undefined;

  /**
   * Takes the next bytes of the body, and yields the ciphertexts that are complete with them; perhaps as views of these bytes.
   * @throws EhbpError for a length that no frame has
   */
  *add(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
    for (let at = 0; at < bytes.length; ) {
      at = this.step(bytes, at);
      if (this.complete) yield this.complete;
      this.complete = undefined;
    }
  }

  /** @throws EhbpError when the body has ended in the middle of a frame */
  end(): void {
    if (!this.isAtBorder) throw new EhbpError('truncated', 'the body ended in the middle of a frame');
  }

  protected override began(length: number): void {
    this.wanted = length;
    this.size = 0;
  }

  protected override passed(bytes: Uint8Array, from: number, to: number): void {
    const part = bytes.subarray(from, to);
    if (part.length === this.wanted) this.complete = part;
    else this.gather(part);
  }

  /** Room grows with what arrives: a length that is only announced takes none. */
  private gather(part: Uint8Array): void {
    const size = this.size + part.length;
    if (this.size === 0) this.gathered = Buffer.allocUnsafeSlow(Math.min(this.wanted, 2 * size));
    else if (size > this.gathered.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(this.wanted, 2 * size));
      larger.set(this.gathered.subarray(0, this.size));
      this.gathered = larger;
    }
    this.gathered.set(part, this.size);
    this.size = size;
    if (size === this.wanted) this.complete = this.gathered.subarray(0, size);
  }
}
