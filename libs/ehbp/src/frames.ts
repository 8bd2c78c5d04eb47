/**
 * A body is a sequence of frames. A frame is the length of the ciphertext, as a 32-bit big-endian integer, and the
 * ciphertext.
 */
import { EhbpError } from './protocol.ts';

/** A body in chunks of any size, which are available or still arrive. */
export type BodyChunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Length of the authentication tag that AES-GCM adds to a plaintext. */
export const TAG_BYTES = 16;
/** Maximum ciphertext of a received frame. */
export const MAX_FRAME_BYTES = 16 * 1024 * 1024 + TAG_BYTES;
/**
 * Maximum plaintext of a sent frame. Smaller frames reduce latency: a frame is readable once it is complete.
 */
const MAX_CHUNK_BYTES = 64 * 1024;
const LENGTH_BYTES = 4;

/** Splits a plaintext into the plaintexts of frames. An empty plaintext has no frames. */
export function* splitIntoFrames(plaintext: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < plaintext.length; at += MAX_CHUNK_BYTES) yield plaintext.subarray(at, at + MAX_CHUNK_BYTES);
}

/** @param ciphertext the consecutive parts of the ciphertext */
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

/** Parses the frames of a body that arrives in chunks of any size. Frames without ciphertext are skipped. */
abstract class FrameParser {
  private length = 0;
  private lengthBytes = 0;
  protected remaining = 0;

  /** Whether the bytes so far end with a complete frame, or there are none. */
  get isAtFrameBoundary(): boolean {
    return this.remaining === 0 && this.lengthBytes === 0;
  }

  /**
   * Consumes either the available bytes of the current frame, or one byte of the length of the next frame.
   * @param at offset of the first byte that has not been consumed yet
   * @returns the new offset
   * @throws EhbpError for an invalid frame length
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
  /** Receives bytes of the current frame. */
  protected abstract onFrameBytes(bytes: Uint8Array, from: number, to: number): void;
}

/** Determines the sizes of the frames of a body without decrypting it. */
export class FrameSizeReader extends FrameParser {
  private sizes: number[] = [];

  /**
   * Consumes the next bytes of the body.
   * @returns the ciphertext lengths of the frames whose length has become known
   * @throws EhbpError for an invalid frame length
   */
  add(bytes: Uint8Array): readonly number[] {
    this.sizes = [];
    for (let at = 0; at < bytes.length; ) at = this.step(bytes, at);
    return this.sizes;
  }

  /** Number of ciphertext bytes of the current frame that have not arrived yet. */
  get missingBytes(): number {
    return this.remaining;
  }

  protected override onFrameStart(length: number): void {
    this.sizes.push(length);
  }

  protected override onFrameBytes(): void {}
}

/** Splits a body into the ciphertexts of its frames. It buffers at most the received part of one frame. */
export class FrameReader extends FrameParser {
  private expectedLength = 0;
  private buffer = Buffer.alloc(0);
  private size = 0;
  private completeFrame: Uint8Array | undefined;

  /**
   * Consumes the next bytes of the body, and yields the ciphertexts that they complete. These may be views of `bytes`.
   * @throws EhbpError for an invalid frame length
   */
  *add(bytes: Uint8Array): Generator<Uint8Array, void, undefined> {
    for (let at = 0; at < bytes.length; ) {
      at = this.step(bytes, at);
      if (this.completeFrame) yield this.completeFrame;
      this.completeFrame = undefined;
    }
  }

  /** Must be called at the end of the body. @throws EhbpError if the body ended in the middle of a frame */
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

  /** The buffer grows with the received bytes, so that an announced length alone allocates no memory. */
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
