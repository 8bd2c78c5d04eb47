/**
 * Duration of a frame in milliseconds, by the configuration number at the start of an Opus packet: 12 configurations of
 * SILK, 4 hybrid ones, 16 of CELT (RFC 6716, 3.1).
 */
const FRAME_MS: readonly number[] = [
  10, 20, 40, 60, 10, 20, 40, 60, 10, 20, 40, 60, 10, 20, 10, 20, 2.5, 5, 10, 20, 2.5, 5, 10, 20, 2.5, 5, 10, 20, 2.5,
  5, 10, 20,
];
export const MAX_OPUS_MS = 120;

export function measureOpusPacketMs(packet: Uint8Array): number {
  const [head = 0, count = 0] = packet;
  const code = head & 3;
  const frames = code === 0 ? 1 : code === 3 ? count & 0x3f : 2;
  return Math.min((FRAME_MS[head >> 3] as number) * frames, MAX_OPUS_MS);
}

/** The duration that is assumed for a packet if it cannot be calculated: a block of 65,536 samples at 8 kHz. */
export const MAX_PACKET_MS = (65_536 / 8_000) * 1_000;
