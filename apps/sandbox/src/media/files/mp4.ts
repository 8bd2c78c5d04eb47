/** Writes MP4 boxes and tracks. Sources: ISO/IEC 14496-12, -14 and -15. */

export interface Track {
  readonly kind: 'video' | 'audio';
  /** Time units per second. */
  readonly timescale: number;
  /** Length of each sample in these units. */
  readonly step: number;
  readonly samples: readonly Buffer[];
  /** The entry in the sample description table. */
  readonly entry: Buffer;
  readonly width?: number;
  readonly height?: number;
}

/** Lengths that a file claims, as factors on the actual length. */
export interface LengthClaims {
  /** In the headers of the movie and its tracks. */
  readonly headers?: number;
  /** In the time-to-sample table. */
  readonly times?: number;
}

const MILLISECONDS = 1_000;
/** No rotation and no scaling. */
const MATRIX = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000];

/** Writes the tracks one after the other, after the tables with their offsets. */
export function createMp4(brand: string, tracks: readonly Track[], claims: LengthClaims = {}): Buffer {
  const ftyp = createBox('ftyp', Buffer.from(`${brand}\0\0\x02\0isom${brand}`, 'latin1'));
  const sizes = tracks.map(({ samples }) => samples.reduce((sum, { length }) => sum + length, 0));
  const createMovieAt = (start: number) => {
    const offsets = sizes.map((_, i) => start + sizes.slice(0, i).reduce((sum, size) => sum + size, 0));
    return createMovieBox(tracks, offsets, claims);
  };
  const start = ftyp.length + createMovieAt(0).length + 8;
  const data = Buffer.concat(tracks.flatMap(({ samples }) => samples));
  return Buffer.concat([ftyp, createMovieAt(start), createBox('mdat', data)]);
}

function createMovieBox(tracks: readonly Track[], offsets: readonly number[], claims: LengthClaims): Buffer {
  const claimed = tracks.map(({ samples, step, timescale }) =>
    Math.round(((samples.length * step * MILLISECONDS) / timescale) * (claims.headers ?? 1)),
  );
  const head = encodeUint32s(0, 0, 0, MILLISECONDS, Math.max(...claimed), 0x10000, 0x1000000, 0, 0, ...MATRIX);
  const mvhd = createBox('mvhd', head, Buffer.alloc(24), encodeUint32s(tracks.length + 1));
  const traks = tracks.map((track, i) =>
    createTrackBox(track, { id: i + 1, offset: offsets[i] ?? 0, claimed: claimed[i] ?? 0, claims }),
  );
  return createBox('moov', mvhd, ...traks);
}

interface TrackLayout {
  readonly id: number;
  readonly offset: number;
  /** In milliseconds. */
  readonly claimed: number;
  readonly claims: LengthClaims;
}

function createTrackBox(track: Track, { id, offset, claimed, claims }: TrackLayout): Buffer {
  const { kind, timescale, step, samples, entry, width = 0, height = 0 } = track;
  const isVideo = kind === 'video';
  const volume = isVideo ? 0 : 0x1000000;
  const tkhd = encodeUint32s(3, 0, 0, id, 0, claimed, 0, 0, 0, volume, ...MATRIX, width << 16, height << 16);
  const length = Math.round(samples.length * step * (claims.headers ?? 1));
  const mdhd = encodeUint32s(0, 0, 0, timescale, length, 0x55c40000); // undetermined language
  const hdlr = Buffer.concat([encodeUint32s(0, 0), Buffer.from(isVideo ? 'vide' : 'soun'), Buffer.alloc(13)]);
  const stbl = createBox(
    'stbl',
    createBox('stsd', encodeUint32s(0, 1), entry),
    createBox('stts', encodeUint32s(0, 1, samples.length, Math.round(step * (claims.times ?? 1)))),
    ...(isVideo ? [createBox('stss', encodeUint32s(0, 1, 1))] : []), // only the first sample is a key frame
    createBox('stsc', encodeUint32s(0, 1, 1, samples.length, 1)),
    createBox(
      'stsz',
      encodeUint32s(0, 0, samples.length),
      Buffer.concat(samples.map(({ length }) => encodeUint32s(length))),
    ),
    createBox('stco', encodeUint32s(0, 1, offset)),
  );
  const dinf = createBox('dinf', createBox('dref', encodeUint32s(0, 1), createBox('url ', encodeUint32s(1))));
  const header = isVideo ? createBox('vmhd', encodeUint32s(1, 0, 0)) : createBox('smhd', encodeUint32s(0, 0));
  const mdia = createBox(
    'mdia',
    createBox('mdhd', mdhd),
    createBox('hdlr', hdlr),
    createBox('minf', header, dinf, stbl),
  );
  return createBox('trak', createBox('tkhd', tkhd), mdia);
}

export function createBox(type: string, ...content: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(
    content.reduce((sum, { length }) => sum + length, 8),
    0,
  );
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, ...content]);
}

/** Encodes big-endian 32-bit integers. */
export function encodeUint32s(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4);
  return bytes;
}
