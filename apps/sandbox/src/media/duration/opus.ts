/** Milliseconds per frame, by the configuration in the first byte of an Opus packet (RFC 6716, 3.1). */
const FRAMES = [
  ...Array.from({ length: 3 }, () => [10, 20, 40, 60]),
  ...Array.from({ length: 2 }, () => [10, 20]),
  ...Array.from({ length: 4 }, () => [2.5, 5, 10, 20]),
].flat();

export function getOpusSeconds(packet: Buffer): number {
  const head = packet[0] ?? 0;
  const code = head & 3;
  const frames = code === 0 ? 1 : code === 3 ? (packet[1] ?? 0) & 0x3f : 2;
  return ((FRAMES[head >> 3] ?? 0) * frames) / 1_000;
}
