/**
 * Films of one colour: real H.264 of the constrained baseline profile. Their first picture has one block of samples, from
 * which all others are predicted; those that follow repeat it. Facts: ITU-T H.264, 7.3 and 9.
 */

import { silentTrack } from './audio.ts';
import { fixed, packed, unsignedGolomb as ue } from './bits.ts';
import { colourOf, lumaOf } from './images.ts';
import { box, type Claims, mp4, type Track, words } from './mp4.ts';

export interface Film {
  /** The same words have the same colour. */
  readonly seed: string;
  readonly seconds: number;
  readonly width: number;
  readonly height: number;
  /** With a track of silence. */
  readonly sound?: boolean;
  /** What it says of its length. */
  readonly claims?: Claims;
}

const FRAMES_PER_SECOND = 24;
/** Units of time to a frame. */
const TICKS = 1_000;
const BLOCK = 16;
/** Frames are counted in four bits. */
const FRAME_NUMBERS = 16;
/** Enough for 4096 × 2304. */
const LEVEL = 51;

export function film({ seed: of, seconds, width, height, sound = false, claims }: Film): Buffer {
  const across = Math.ceil(width / BLOCK);
  const down = Math.ceil(height / BLOCK);
  const frames = Math.max(1, Math.round(seconds * FRAMES_PER_SECOND));
  const key = keyFrame(of, across, down);
  const rest = Array.from({ length: frames - 1 }, (_, i) => sameAgain((i + 1) % FRAME_NUMBERS, across * down));
  const video: Track = {
    kind: 'video',
    timescale: FRAMES_PER_SECOND * TICKS,
    step: TICKS,
    samples: [key, ...rest].map((unit) => Buffer.concat([words(unit.length), unit])),
    entry: entry(width, height, across, down),
    width,
    height,
  };
  return mp4('mp42', [video, ...(sound ? [silentTrack(seconds)] : [])], claims);
}

function entry(width: number, height: number, across: number, down: number): Buffer {
  const sps = sequence(width, height, across, down);
  const pps = unit(0x68, '11' + '00' + '111' + '000' + '111' + '000');
  const head = Buffer.from([1, 66, 0xc0, LEVEL, 0xff, 0xe1, ...short(sps.length)]);
  const avcC = box('avcC', head, sps, Buffer.from([1, ...short(pps.length)]), pps);
  const size = Buffer.from([...short(width), ...short(height)]);
  const resolution = words(0x480000, 0x480000, 0);
  const rest = Buffer.concat([Buffer.from([0, 1]), Buffer.alloc(32), Buffer.from([0, 24, 0xff, 0xff])]);
  return box('avc1', words(0, 1), Buffer.alloc(16), size, resolution, rest, avcC);
}

function sequence(width: number, height: number, across: number, down: number): Buffer {
  const cropped = (have: number, want: number) => ue(Math.floor((have * BLOCK - want) / 2));
  const counts = `${ue(0) + ue(0) + ue(2) + ue(1)}0`;
  const size = `${ue(across - 1) + ue(down - 1)}11`;
  const crop = `1${ue(0)}${cropped(across, width)}${ue(0)}${cropped(down, height)}`;
  return unit(0x67, `${fixed(66, 8) + fixed(0xc0, 8) + fixed(LEVEL, 8) + counts + size + crop}0`);
}

/** A block of samples, and blocks that are the mean of their neighbours, without anything to add. */
function keyFrame(of: string, across: number, down: number): Buffer {
  const [y, cb, cr] = lumaOf(colourOf(of));
  const head = `${ue(0)}${ue(7)}${ue(0)}${fixed(0, 4)}${ue(0)}001${ue(25)}`;
  const start = head.padEnd(Math.ceil(head.length / 8) * 8, '0');
  const samples = [y, cb, cr].map((value, i) => fixed(value, 8).repeat(i === 0 ? 256 : 64)).join('');
  const like = `${ue(3)}11`;
  const besideSamples = `${like}000011`;
  const plain = `${like}1`;
  const firstRow = across > 1 ? besideSamples + plain.repeat(across - 2) : '';
  const others = down > 1 ? besideSamples + plain.repeat(across * (down - 1) - 1) : '';
  return unit(0x65, start + samples + firstRow + others);
}

function sameAgain(frame: number, blocks: number): Buffer {
  return unit(0x41, `${ue(0)}${ue(5)}${ue(0)}${fixed(frame, 4)}0001${ue(blocks)}`);
}

/** Bits with their end mark; three bytes that would be taken for a start code are kept apart. */
function unit(head: number, bits: string): Buffer {
  const bytes: number[] = [head];
  let zeros = 0;
  for (const byte of packed(`${bits}1`)) {
    if (zeros === 2 && byte <= 3) {
      bytes.push(3);
      zeros = 0;
    }
    bytes.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return Buffer.from(bytes);
}

function short(value: number): readonly [number, number] {
  return [value >> 8, value & 0xff];
}
