/** Bodies as a sequence of frames: the length of the ciphertext as a big-endian integer of 32 bits, then the ciphertext. */
import { EhbpError } from './protocol.ts';

/** A body in pieces of any size, whether they arrive or are there. */
export type BodyChunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** What AES-GCM adds to a plaintext. */
export const TAG_BYTES = 16;
/** The longest ciphertext of a frame that is taken. */
export const MAX_FRAME_BYTES = 16 * 1024 * 1024 + TAG_BYTES;
/** The most plaintext that we put into a frame: what has arrived of it can be read only when all of it has. */
const MAX_CHUNK_BYTES = 64 * 1024;
const LENGTH_BYTES = 4;

/** Splits what is encrypted into the plaintexts of frames; nothing has no frame. */
export function* splitIntoFrames(plaintext: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < plaintext.length; at += MAX_CHUNK_BYTES) yield plaintext.subarray(at, at + MAX_CHUNK_BYTES);
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
abstract class FrameParser {
  private length = 0;
  private lengthBytes = 0;
  protected remaining = 0;

  /** Whether the last frame that began is complete. */
  get isAtFrameBoundary(): boolean {
    return this.remaining === 0 && this.lengthBytes === 0;
  }

  /**
   * Takes what belongs together of these bytes: what there is of a frame, or a byte of its length.
   * @param at where the bytes that were not taken yet begin
   * @returns where they begin now
   * @throws EhbpError for a length that no frame has
   */
  protected step(bytes: Uint8Array, at: number): number {
    if (this.remaining > 0) {
      const end = Math.min(at + this.remaining, bytes.length);
      this.remaining -= end - at;
      this.onFrameBytes(bytes, at, end);
      return end;
    }
    this.length = this.length * 256 + (bytes[at] as number);
    if (++this.lengthBytes === LENGTH_BYTES) this.beginFrame();
    return at + 1;
  }

  private beginFrame(): void {
    const { length } = this;
    this.length = 0;
    this.lengthBytes = 0;
    if (length === 0) return;
    if (length < TAG_BYTES) throw new EhbpError('malformed', 'a frame is shorter than its tag');
    if (length > MAX_FRAME_BYTES) throw new EhbpError('malformed', `a frame is longer than ${MAX_FRAME_BYTES} bytes`);
    this.remaining = length;
    this.onFrameStart(length);
  }

  protected abstract onFrameStart(length: number): void;
  /** These bytes belong to the frame that began last. */
  protected abstract onFrameBytes(bytes: Uint8Array, from: number, to: number): void;
}

/** How long the frames of a body are, for those who cannot read it. */
export class FrameSizeReader extends FrameParser {
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
  get missingBytes(): number {
    return this.remaining;
  }

  protected override onFrameStart(length: number): void {
    this.sizes.push(length);
  }

  protected override onFrameBytes(): void {}
}

/** Takes a body apart into the ciphertexts of its frames; it keeps no more than has arrived of one frame. */
export class FrameReader extends FrameParser {
  private expectedLength = 0;
  private buffer = Buffer.alloc(0);
  private size = 0;
  private completeFrame: Uint8Array | undefined;

  /**
   * Takes the next bytes of the body, and yields the ciphertexts that are complete with them; perhaps as views of these bytes.
   * @throws EhbpError for a length that no frame has
   */
  *add(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
    for (let at = 0; at < bytes.length; ) {
      at = this.step(bytes, at);
      if (this.completeFrame) yield this.completeFrame;
      this.completeFrame = undefined;
    }
  }

  /** @throws EhbpError when the body has ended in the middle of a frame */
  end(): void {
    if (!this.isAtFrameBoundary) throw new EhbpError('truncated', 'the body ended in the middle of a frame');
  }

  protected override onFrameStart(length: number): void {
    this.expectedLength = length;
    this.size = 0;
  }

  protected override onFrameBytes(bytes: Uint8Array, from: number, to: number): void {
    const part = bytes.subarray(from, to);
    if (part.length === this.expectedLength) this.completeFrame = part;
    else this.accumulate(part);
  }

  /** Room grows with what arrives: a length that is only announced takes none. */
  private accumulate(part: Uint8Array): void {
    const size = this.size + part.length;
    if (this.size === 0) this.buffer = Buffer.allocUnsafeSlow(Math.min(this.expectedLength, 2 * size));
    else if (size > this.buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(this.expectedLength, 2 * size));
      larger.set(this.buffer.subarray(0, this.size));
      this.buffer = larger;
    }
    this.buffer.set(part, this.size);
    this.size = size;
    if (size === this.expectedLength) this.completeFrame = this.buffer.subarray(0, size);
  }
}
