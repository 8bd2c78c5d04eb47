/** A recording that is to be transcribed, as its content describes it. */
export interface AudioRecording {
  /** Such as `audio/mpeg`. */
  readonly mediaType: string;
  /** The usual file name extension, without the dot: some providers rely on it. */
  readonly extension: string;
  /**
   * The maximum duration that a decoder can produce, counted from frames or packets. If these cannot be counted, the
   * duration of the bytes at the lowest bit rate of the format. Never the duration that the header states.
   */
  readonly milliseconds: number;
}

export abstract class AudioDurationCounter {
  /**
   * @returns undefined if a file cannot be measured: it is not MP3, MP4, M4A, MPEG, MPGA, WAV or WebM, or has no audio
   * @throws UpstreamError if too many recordings are being measured
   */
  abstract measure(path: string): Promise<AudioRecording | undefined>;
}
