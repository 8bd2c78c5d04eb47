const EMPTY_BUFFER = Buffer.alloc(0);

/** Bytes that come in pieces, put together in memory that grows with them: a piece of one byte, as a sender may choose, needs no more. */
export class ByteAccumulator {
  /** How many have come. */
  size = 0;
  private buffer: Buffer = EMPTY_BUFFER;

  /** @param chunk must stay as it is: a single one is not copied */
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
