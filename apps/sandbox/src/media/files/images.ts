/**
 * Generates images of one colour: PNG with a palette and one bit per pixel, JPEG, and lossless WebP. Sources: the PNG
 * specification, ITU-T T.81 (JPEG), WebP's lossless bitstream specification.
 */
import { createHash } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import { packBits, packBitsLowestFirst, toBits } from './bits.ts';

export type ImageFormat = 'png' | 'jpeg' | 'webp';

export interface ImageSpec {
  /** The same seed has the same colour. */
  readonly seed: string;
  readonly width: number;
  readonly height: number;
  readonly format?: ImageFormat;
  /** The minimum size of a PNG in bytes. */
  readonly minBytes?: number;
}

type Rgb = readonly [red: number, green: number, blue: number];

export function createImage({ seed, width, height, format = 'png', minBytes = 0 }: ImageSpec): Buffer {
  const image = { png: createPng, jpeg: createJpeg, webp: createWebp }[format](toColour(seed), width, height);
  return format === 'png' && image.length < minBytes ? insertPngChunk(image, minBytes - image.length) : image;
}

export function toColour(seed: string): Rgb {
  const [red = 0, green = 0, blue = 0] = createHash('sha256').update(seed).digest();
  return [red, green, blue];
}

/** Converts to luminance, blue difference and red difference, in the limited range of television. */
export function toYCbCr([red, green, blue]: Rgb): readonly [number, number, number] {
  const y = 16 + (65.738 * red + 129.057 * green + 25.064 * blue) / 256;
  const cb = 128 + (-37.945 * red - 74.494 * green + 112.439 * blue) / 256;
  const cr = 128 + (112.439 * red - 94.154 * green - 18.285 * blue) / 256;
  return [Math.round(y), Math.round(cb), Math.round(cr)];
}

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const PALETTE = 3;

function createPng(colour: Rgb, width: number, height: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([1, PALETTE], 8);
  const rows = deflateSync(Buffer.alloc((1 + Math.ceil(width / 8)) * height), { level: 1 });
  const parts = [createChunk('IHDR', header), createChunk('PLTE', Buffer.from(colour)), createChunk('IDAT', rows)];
  return Buffer.concat([PNG_SIGNATURE, ...parts, createChunk('IEND', Buffer.alloc(0))]);
}

/** Inserts a chunk without a meaning before the end. */
function insertPngChunk(png: Buffer, size: number): Buffer {
  const end = png.lastIndexOf('IEND') - 4;
  return Buffer.concat([png.subarray(0, end), createChunk('paDd', Buffer.alloc(size)), png.subarray(end)]);
}

function createChunk(type: string, data: Buffer): Buffer {
  const typedData = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const bytes = Buffer.alloc(typedData.length + 8);
  bytes.writeUInt32BE(data.length, 0);
  typedData.copy(bytes, 4);
  bytes.writeUInt32BE(crc32(typedData), typedData.length + 4);
  return bytes;
}

/**
 * Three components at full resolution. Each block has only a mean. In all blocks but the first, this mean equals that
 * of the previous block.
 */
function createJpeg([red, green, blue]: Rgb, width: number, height: number): Buffer {
  const createSegment = (marker: number, ...content: number[]) =>
    Buffer.from([0xff, marker, ...toBytes(content.length + 2), ...content]);
  const y = 0.299 * red + 0.587 * green + 0.114 * blue;
  const means = [y, 128 + (blue - y) * 0.564, 128 + (red - y) * 0.713].map(Math.round);
  const head = [
    Buffer.from([0xff, 0xd8]),
    createSegment(0xe0, ...Buffer.from('JFIF\0'), 1, 1, 0, ...toBytes(1), ...toBytes(1), 0, 0),
    createSegment(0xdb, 0, ...Array.from({ length: 64 }, () => 8)), // quantisation by 8 makes each step of a mean 1
    createSegment(0xc0, 8, ...toBytes(height), ...toBytes(width), 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0),
    createSegment(0xc4, 0x00, 1, 0, 0, 0, 11, ...Array.from({ length: 11 }, () => 0), ...MEAN_CODES.keys()),
    createSegment(0xc4, 0x10, 1, ...Array.from({ length: 15 }, () => 0), 0),
    createSegment(0xda, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0),
  ];
  const first = means.map((mean) => `${encodeMean(mean - 128)}0`).join('');
  const blocks = Math.ceil(width / 8) * Math.ceil(height / 8);
  const scan = packBits(first + '000000'.repeat(blocks - 1), '1');
  return Buffer.concat([...head, stuffBytes(scan), Buffer.from([0xff, 0xd9])]);
}

/** Huffman codes for the number of bits of a difference: one bit for 0, five bits for any other number. */
const MEAN_CODES = Array.from({ length: 12 }, (_, bits) => (bits === 0 ? '0' : toBits(15 + bits, 5)));

function encodeMean(difference: number): string {
  const bits = difference === 0 ? 0 : Math.abs(difference).toString(2).length;
  const value = difference < 0 ? difference + 2 ** bits - 1 : difference;
  return `${MEAN_CODES[bits]}${bits === 0 ? '' : toBits(value, bits)}`;
}

function toBytes(value: number): readonly [number, number] {
  return [value >> 8, value & 0xff];
}

/** All bytes after these are zeros, apart from the filler at the end. */
const CODED_BYTES = 8;

/** Inserts a zero after each byte of ones, which would otherwise start a marker. */
function stuffBytes(scan: Buffer): Buffer {
  const coded = [...scan.subarray(0, CODED_BYTES)].flatMap((byte) => (byte === 0xff ? [byte, 0] : [byte]));
  return Buffer.concat([Buffer.from(coded), scan.subarray(CODED_BYTES)]);
}

const ALPHA_IS_OPAQUE = 255;
const DISTANCES = 0;

/** Each channel has a code with a single symbol, so that pixels take no bits. */
function createWebp([red, green, blue]: Rgb, width: number, height: number): Buffer {
  const encodeSingleSymbol = (value: number) =>
    [
      [1, 1],
      [0, 1],
      [1, 1],
      [value, 8],
    ] as const;
  const size = [
    [width - 1, 14],
    [height - 1, 14],
    [0, 1],
    [0, 3],
  ] as const;
  const options = [
    [0, 1],
    [0, 1],
    [0, 1],
  ] as const; // no transforms, no colour cache, one group of codes
  const codes = [green, red, blue, ALPHA_IS_OPAQUE, DISTANCES].flatMap(encodeSingleSymbol);
  const bits = packBitsLowestFirst([...size, ...options, ...codes]);
  const stream = Buffer.concat([Buffer.from([0x2f]), bits, Buffer.alloc((bits.length + 1) % 2)]);
  const head = Buffer.from('RIFF\0\0\0\0WEBPVP8L\0\0\0\0', 'latin1');
  head.writeUInt32LE(stream.length + 12, 4);
  head.writeUInt32LE(bits.length + 1, 16);
  return Buffer.concat([head, stream]);
}

/** Recognises PNG, JPEG and WebP. */
export function isImage(bytes: Buffer): boolean {
  return (
    bytes.subarray(0, 8).equals(PNG_SIGNATURE) ||
    bytes.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex')) ||
    (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP')
  );
}
