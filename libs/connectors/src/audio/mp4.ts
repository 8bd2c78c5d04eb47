/**
 * How much sound there is at most in an MP4 file: as many samples as its tables have, each as long as its codec makes them;
 * their times are not believed. Facts: ISO/IEC 14496-12, -14 and -3. The library that was tried takes time by the square of
 * the samples in a chunk: 2.8 s for 17 minutes that lie in one.
 */
import { sampleLength } from './mp4-codecs.ts';
import { Fragments } from './mp4-fragments.ts';
import { mpegMilliseconds } from './mpeg-audio.ts';
import { LONGEST_PACKET_MS } from './opus.ts';

const CONTAINERS: ReadonlySet<string> = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl', 'mvex', 'moof', 'traf']);
const MAX_DEPTH = 8;
const MAX_TRACKS = 128;
/** Bytes of a second of what is not counted, at 8 kbit/s. */
const LOWEST_RATE = 1_000;
/** A file of which less is samples has sound that its tables do not name. */
const ORDINARY_SHARE = 0.5;
/** Tables and tags of a file in which little is said. */
const AROUND_SAMPLES = 64 * 1024;
const SAMPLE_DESCRIPTIONS_AT = 8;

interface Track {
  id: number;
  isSound: boolean;
  isPicture: boolean;
  entries: Buffer | undefined;
  samples: number;
  bytes: number;
}

export function mp4Milliseconds(file: Buffer): number {
  const found: Found = { tracks: [], fragments: new Fragments() };
  walk(file, found, 0);
  const covered = found.tracks.reduce((sum, { bytes }) => sum + bytes, found.fragments.bytes);
  const lengths = found.tracks.filter(hasSound).flatMap((track) => lengthsOf(track, found.fragments, file.length));
  const others = lengths.filter((length) => length !== 'mpeg');
  const longest = Math.ceil(Math.max(0, ...others, lengths.includes('mpeg') ? mpegMilliseconds(file) : 0));
  const isOrdinary = covered >= file.length * ORDINARY_SHARE - AROUND_SAMPLES;
  return longest === 0 || isOrdinary ? longest : Math.max(longest, Math.ceil((file.length / LOWEST_RATE) * 1_000));
}

const NO_TRACK = { isSound: false, isPicture: false, entries: undefined, samples: 0, bytes: 0 };

interface Found {
  readonly tracks: Track[];
  readonly fragments: Fragments;
}

/** Readers take a track for sound by its handler, or by its codec where the handler says nothing of it. */
function hasSound({ isSound, isPicture, entries }: Track): boolean {
  return isSound || (!isPicture && entries !== undefined && lengthsIn(entries).some((length) => length !== undefined));
}

function lengthsIn(entries: Buffer) {
  return [...boxesIn(entries)].map(({ type, start, end }) => sampleLength(type, entries.subarray(start, end)));
}

/** By each description of its samples: any may be the true one. */
function lengthsOf(
  { id, entries, samples, bytes }: Track,
  fragments: Fragments,
  fileSize: number,
): readonly (number | 'mpeg')[] {
  const added = fragments.of(id);
  const total = samples + added.samples;
  const size = bytes + added.bytes;
  if (total === 0 || !entries) return [];
  return [...new Set(lengthsIn(entries))].map((length) => {
    if (length === 'mpeg') return length;
    if (!length) return Math.max(total * LONGEST_PACKET_MS, (size / LOWEST_RATE) * 1_000);
    if (length.isPlain) return (fileSize / length.bytes) * length.milliseconds;
    // A sample that is longer than any may have several of them in it.
    return Math.max(total, Math.ceil(size / length.bytes)) * length.milliseconds;
  });
}

function walk(bytes: Buffer, found: Found, depth: number): void {
  if (depth > MAX_DEPTH) return;
  for (const { type, start, end } of boxesIn(bytes)) {
    const content = bytes.subarray(start, end);
    if (type === 'trak') found.tracks.push({ id: 0, ...NO_TRACK });
    if (found.tracks.length > MAX_TRACKS) throw new RangeError('too many tracks');
    const track = found.tracks.at(-1);
    if (CONTAINERS.has(type)) walk(content, found, depth + 1);
    else if (!found.fragments.take(type, content) && track) take(type, content, track);
  }
}

function take(type: string, content: Buffer, track: Track): void {
  const number = (at: number) => (at + 4 <= content.length ? content.readUInt32BE(at) : 0);
  if (type === 'tkhd') track.id = number(content[0] === 1 ? 20 : 12);
  else if (type === 'hdlr') takeHandler(track, content.toString('latin1', 8, 12));
  else if (type === 'stsd') track.entries = content.subarray(SAMPLE_DESCRIPTIONS_AT);
  else if (type === 'stsz') addSizes(track, content);
  else if (type === 'stz2') track.samples += number(8);
}

function takeHandler(track: Track, handler: string): void {
  track.isSound ||= handler === 'soun';
  track.isPicture ||= handler === 'vide';
}

/** One size for all, or one for each. */
function addSizes(track: Track, content: Buffer): void {
  if (content.length < 12) return;
  const size = content.readUInt32BE(4);
  const samples = content.readUInt32BE(8);
  track.samples += samples;
  if (size > 0) track.bytes += size * samples;
  else for (let at = 12; at + 4 <= content.length; at += 4) track.bytes += content.readUInt32BE(at);
}

interface Box {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

function* boxesIn(bytes: Buffer): Generator<Box> {
  for (let at = 0; at + 8 <= bytes.length; ) {
    const short = bytes.readUInt32BE(at);
    const isLong = short === 1 && at + 16 <= bytes.length;
    const size = isLong ? Number(bytes.readBigUInt64BE(at + 8)) : short === 0 ? bytes.length - at : short;
    if (size < 8) return;
    const end = Math.min(at + size, bytes.length);
    yield { type: bytes.toString('latin1', at + 4, at + 8), start: at + (isLong ? 16 : 8), end };
    at += size;
  }
}
