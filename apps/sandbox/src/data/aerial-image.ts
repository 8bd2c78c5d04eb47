/**
 * Generates a georeferenced aerial image: one strip of uncompressed RGB. Sources: TIFF 6.0, and GeoTIFF's tags for
 * pixel scale and tie point (OGC 19-008).
 */
import { toColour } from '../media/files/images.ts';

const SIDE = 64;
const METRES_PER_PIXEL = 0.1;
const SHORT = 3;
const LONG = 4;
const DOUBLE = 12;
const HEADER_BYTES = 8;
const ENTRY_BYTES = 12;

type Entry = readonly [tag: number, type: number, count: number, value: number];

export function createAerialImage(seed: string): Buffer {
  const pixels = Buffer.alloc(SIDE * SIDE * 3, Buffer.from(toColour(seed)));
  const tagData = Buffer.alloc(6 + 9 * 8);
  for (let i = 0; i < 3; i += 1) tagData.writeUInt16LE(8, i * 2);
  // The pixel scale, and a tie point on the equator in UTM zone 31N.
  const numbers = [METRES_PER_PIXEL, METRES_PER_PIXEL, 0, 0, 0, 0, 166_021, 0, 0];
  for (const [i, number] of numbers.entries()) tagData.writeDoubleLE(number, 6 + i * 8);

  const directory = (start: number): readonly Entry[] => [
    [256, LONG, 1, SIDE],
    [257, LONG, 1, SIDE],
    [258, SHORT, 3, start],
    [259, SHORT, 1, 1],
    [262, SHORT, 1, 2],
    [273, LONG, 1, start + tagData.length],
    [277, SHORT, 1, 3],
    [278, LONG, 1, SIDE],
    [279, LONG, 1, pixels.length],
    [33_550, DOUBLE, 3, start + 6],
    [33_922, DOUBLE, 6, start + 6 + 3 * 8],
  ];
  const length = 2 + directory(0).length * ENTRY_BYTES + 4;
  const head = Buffer.alloc(HEADER_BYTES + length);
  head.write('II*\0', 'latin1');
  head.writeUInt32LE(HEADER_BYTES, 4);
  const entries = directory(head.length);
  head.writeUInt16LE(entries.length, HEADER_BYTES);
  for (const [i, [tag, type, count, value]] of entries.entries()) {
    const at = HEADER_BYTES + 2 + i * ENTRY_BYTES;
    head.writeUInt16LE(tag, at);
    head.writeUInt16LE(type, at + 2);
    head.writeUInt32LE(count, at + 4);
    head.writeUInt32LE(value, at + 8);
  }
  return Buffer.concat([head, tagData, pixels]);
}
