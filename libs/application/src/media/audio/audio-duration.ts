/** A recording that is to be transcribed, as its content says. */
export interface AudioRecording {
  /** Such as `audio/mpeg`. */
  readonly mediaType: string;
  /** The usual end of such a file's name, without the dot: some vendors judge by it. */
  readonly extension: string;
  /**
   * What a decoder can get out of it at most, counted from its frames or packets; or, where these cannot be counted, what
   * its bytes come to at the lowest bit rate of its format. Never what its header says.
   */
  readonly milliseconds: number;
}

export abstract class AudioDurationCounter {
  /** Undefined where a file is none of MP3, MP4, M4A, MPEG, MPGA, WAV and WebM, or has no sound in it. */
  abstract measure(path: string): Promise<AudioRecording | undefined>;
}
