const EMPTY_BUFFER = Buffer.alloc(0);

/**
 * Joins chunks of bytes in one buffer that grows with them. So even chunks of one byte, which a sender may choose, need
 * little memory.
 */
export class ByteAccumulator {
  /** Number of bytes added so far. */
  size = 0;
  private buffer: Buffer = EMPTY_BUFFER;

  /** @param chunk must not change afterwards: a single chunk is not copied */
  add(chunk: Uint8Array): void {
    const before = this.size;
    this.size += chunk.byteLength;
    if (before === 0) {
      this.buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      return;
    }
    if (this.size > this.buffer.length) {
      const buffer = Buffer.allocUnsafe(Math.max(this.size, 2 * before));
      this.buffer.copy(buffer, 0, 0, before);
      this.buffer = buffer;
    }
    this.buffer.set(chunk, before);
  }

  get bytes(): Buffer {
    return this.buffer.subarray(0, this.size);
  }
}
