declare module 'webvtt-parser' {
  /** Times are in seconds. */
  interface Cue {
    readonly startTime: number;
    readonly endTime: number;
    readonly tree: { readonly children: readonly { readonly value?: string }[] };
  }

  class WebVTTParser {
    /** @param entities characters by their entity, which includes its ampersand and semicolon */
    constructor(entities?: Readonly<Record<string, string>>);
    parse(text: string, mode: 'subtitles'): { readonly cues: readonly Cue[]; readonly errors: readonly unknown[] };
  }

  const module: { readonly WebVTTParser: typeof WebVTTParser };
  export default module;
}
