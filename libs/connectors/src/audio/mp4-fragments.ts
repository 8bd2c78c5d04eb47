/** Samples in the fragments of an MP4 file. Source: ISO/IEC 14496-12, 8.8. */

/** Optional fields of a fragment header before the default sample size, with their sizes in bytes. */
const FIELDS_BEFORE_SIZE: readonly (readonly [flag: number, bytes: number])[] = [
  [0x1, 8],
  [0x2, 4],
  [0x8, 4],
];
const HAS_SIZE = 0x10;
/** Optional fields of a track run before its samples. */
const FIELDS_BEFORE_SAMPLES: readonly (readonly [flag: number, bytes: number])[] = [
  [0x1, 4],
  [0x4, 4],
];
/** Optional fields of each sample of a run, with 4 bytes each; the second is the size of the sample. */
const SAMPLE_FIELDS = [0x100, 0x200, 0x400, 0x800];
const HAS_SAMPLE_SIZE = 0x200;
const MAX_TRACKS = 128;

export interface Samples {
  readonly samples: number;
  readonly bytes: number;
}

const NO_SAMPLES: Samples = { samples: 0, bytes: 0 };

export class Fragments {
  private readonly byTrack = new Map<number, Samples>();
  /** Default sample sizes by track, for fragments that specify none. */
  private readonly sizes = new Map<number, number>();
  private track = 0;
  private size = 0;

  /** Total size of the samples of all tracks. */
  get bytes(): number {
    return [...this.byTrack.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  getSamples(track: number): Samples {
    return this.byTrack.get(track) ?? NO_SAMPLES;
  }

  /**
   * Reads a box that describes the samples of fragments: `trex`, `tfhd` or `trun`.
   * @returns false for any other box
   * @throws RangeError for too many tracks
   */
  readBox(type: string, content: Buffer): boolean {
    const readUint32 = (at: number) => (at + 4 <= content.length ? content.readUInt32BE(at) : 0);
    const flags = readUint32(0) & 0xffffff;
    if (type === 'trex') {
      this.sizes.set(readUint32(4), readUint32(16));
    } else if (type === 'tfhd') {
      this.track = readUint32(4);
      const explicitSize =
        (flags & HAS_SIZE) !== 0 ? readUint32(8 + sumFieldLengths(FIELDS_BEFORE_SIZE, flags)) : undefined;
      this.size = explicitSize ?? this.sizes.get(this.track) ?? 0;
    } else if (type === 'trun') {
      this.add(readUint32(4), this.countBytes(content, flags, readUint32(4)));
    } else return false;
    if (this.sizes.size > MAX_TRACKS || this.byTrack.size > MAX_TRACKS) throw new RangeError('too many tracks');
    return true;
  }

  private add(samples: number, bytes: number): void {
    const before = this.getSamples(this.track);
    this.byTrack.set(this.track, { samples: before.samples + samples, bytes: before.bytes + bytes });
  }

  private countBytes(run: Buffer, flags: number, samples: number): number {
    if ((flags & HAS_SAMPLE_SIZE) === 0) return this.size * samples;
    const width = SAMPLE_FIELDS.filter((flag) => (flags & flag) !== 0).length * 4;
    const first = 8 + sumFieldLengths(FIELDS_BEFORE_SAMPLES, flags) + ((flags & 0x100) !== 0 ? 4 : 0);
    let bytes = 0;
    for (let at = first, remaining = samples; remaining > 0 && at + 4 <= run.length; at += width, remaining--)
      bytes += run.readUInt32BE(at);
    return bytes;
  }
}

function sumFieldLengths(fields: readonly (readonly [flag: number, bytes: number])[], flags: number): number {
  return fields.reduce((sum, [flag, bytes]) => sum + ((flags & flag) !== 0 ? bytes : 0), 0);
}
