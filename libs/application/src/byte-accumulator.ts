const NOTHING = Buffer.alloc(0);

/** Bytes that come in pieces, put together in memory that grows with them: a piece of one byte, as a sender may choose, needs no more. */
export class ByteAccumulator {
  /** How many have come. */
  size = 0;
  private room: Buffer = NOTHING;

  /** @param piece must stay as it is: a single one is not copied */
  add(piece: Uint8Array): void {
    const before = this.size;
    this.size += piece.byteLength;
    if (before === 0) {
      this.room = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
      return;
    }
    if (this.size > this.room.length) {
      const room = Buffer.allocUnsafe(Math.max(this.size, 2 * before));
      this.room.copy(room, 0, 0, before);
      this.room = room;
    }
    this.room.set(piece, before);
  }

  get bytes(): Buffer {
    return this.room.subarray(0, this.size);
  }
}
