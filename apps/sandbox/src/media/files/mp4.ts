/** MP4: boxes and tracks. Facts: ISO/IEC 14496-12, -14 and -15. */

export interface Track {
  readonly kind: 'video' | 'audio';
  /** Units of a second. */
  readonly timescale: number;
  /** How long each sample is, in these units. */
  readonly step: number;
  readonly samples: readonly Buffer[];
  /** The entry of the table of descriptions. */
  readonly entry: Buffer;
  readonly width?: number;
  readonly height?: number;
}

/** What a file says of its length, as parts of the truth. */
export interface Claims {
  /** In the headers of the movie and its tracks. */
  readonly headers?: number;
  /** In the table of times. */
  readonly times?: number;
}

const MILLISECONDS = 1_000;
/** No rotation, no scale. */
const MATRIX = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000];

/** The tracks one after the other, behind the tables that say where they are. */
export function mp4(brand: string, tracks: readonly Track[], claims: Claims = {}): Buffer {
  const ftyp = box('ftyp', Buffer.from(`${brand}\0\0\x02\0isom${brand}`, 'latin1'));
  const sizes = tracks.map(({ samples }) => samples.reduce((sum, { length }) => sum + length, 0));
  const movieBehind = (start: number) => {
    const offsets = sizes.map((_, i) => start + sizes.slice(0, i).reduce((sum, size) => sum + size, 0));
    return movie(tracks, offsets, claims);
  };
  const start = ftyp.length + movieBehind(0).length + 8;
  return Buffer.concat([ftyp, movieBehind(start), box('mdat', ...tracks.flatMap(({ samples }) => samples))]);
}

function movie(tracks: readonly Track[], offsets: readonly number[], claims: Claims): Buffer {
  const claimed = tracks.map(({ samples, step, timescale }) =>
    Math.round(((samples.length * step * MILLISECONDS) / timescale) * (claims.headers ?? 1)),
  );
  const head = words(0, 0, 0, MILLISECONDS, Math.max(...claimed), 0x10000, 0x1000000, 0, 0, ...MATRIX);
  const mvhd = box('mvhd', head, Buffer.alloc(24), words(tracks.length + 1));
  const traks = tracks.map((each, i) =>
    trak(each, { id: i + 1, offset: offsets[i] ?? 0, claimed: claimed[i] ?? 0, claims }),
  );
  return box('moov', mvhd, ...traks);
}

interface Place {
  readonly id: number;
  readonly offset: number;
  /** Milliseconds. */
  readonly claimed: number;
  readonly claims: Claims;
}

function trak(track: Track, { id, offset, claimed, claims }: Place): Buffer {
  const { kind, timescale, step, samples, entry, width = 0, height = 0 } = track;
  const isVideo = kind === 'video';
  const volume = isVideo ? 0 : 0x1000000;
  const tkhd = words(3, 0, 0, id, 0, claimed, 0, 0, 0, volume, ...MATRIX, width << 16, height << 16);
  const length = Math.round(samples.length * step * (claims.headers ?? 1));
  const mdhd = words(0, 0, 0, timescale, length, 0x55c40000); // of no language
  const hdlr = Buffer.concat([words(0, 0), Buffer.from(isVideo ? 'vide' : 'soun'), Buffer.alloc(13)]);
  const stbl = box(
    'stbl',
    box('stsd', words(0, 1), entry),
    box('stts', words(0, 1, samples.length, Math.round(step * (claims.times ?? 1)))),
    ...(isVideo ? [box('stss', words(0, 1, 1))] : []), // the first one alone stands for itself
    box('stsc', words(0, 1, 1, samples.length, 1)),
    box('stsz', words(0, 0, samples.length, ...samples.map((each) => each.length))),
    box('stco', words(0, 1, offset)),
  );
  const dinf = box('dinf', box('dref', words(0, 1), box('url ', words(1))));
  const header = isVideo ? box('vmhd', words(1, 0, 0)) : box('smhd', words(0, 0));
  const mdia = box('mdia', box('mdhd', mdhd), box('hdlr', hdlr), box('minf', header, dinf, stbl));
  return box('trak', box('tkhd', tkhd), mdia);
}

export function box(type: string, ...content: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(
    content.reduce((sum, { length }) => sum + length, 8),
    0,
  );
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, ...content]);
}

/** Numbers of 32 bits. */
export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4);
  return bytes;
}
