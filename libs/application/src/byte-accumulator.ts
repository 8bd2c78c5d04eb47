const EMPTY_BUFFER = Buffer.alloc(0);
/** A buffer of up to this size is copied as it grows. Copying a larger one takes too long: 50 ms for 24 MB. */
const MAX_COPIED_BYTES = 1024 * 1024;

/**
 * Joins chunks of bytes in one buffer that grows with them. So even chunks of one byte, which a sender may choose, need
 * little memory.
 */
export class ByteAccumulator {
  /** Number of bytes added so far. */
  size = 0;
  private buffer: Buffer = EMPTY_BUFFER;

  /** @param expectedBytes what a large buffer has room for at once. Memory is used only for the bytes that are added. */
  constructor(private readonly expectedBytes = 0) {}

  /** @param chunk must not change afterwards: a single chunk is not copied */
  add(chunk: Uint8Array): void {
    const before = this.size;
    this.size += chunk.byteLength;
    if (before === 0) {
      this.buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      return;
    }
    if (this.size > this.buffer.length) {
      const expectedBytes = this.size > MAX_COPIED_BYTES ? this.expectedBytes : 0;
      const buffer = Buffer.allocUnsafe(Math.max(this.size, 2 * before, expectedBytes));
      this.buffer.copy(buffer, 0, 0, before);
      this.buffer = buffer;
    }
    this.buffer.set(chunk, before);
  }

  get bytes(): Buffer {
    return this.buffer.subarray(0, this.size);
  }
}
