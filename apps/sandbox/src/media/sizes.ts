/** Sizes of images and videos in pixels. */

/** Returns a size of about the same area as a square of this side, in exactly this ratio; `auto` means 1:1. */
export function getImageSize(ratio = '1:1', side = 1_024): readonly [number, number] {
  const [across = 1, down = 1] = ratio === 'auto' ? [] : ratio.split(':').map(Number);
  const unit = Math.max(1, Math.floor(side / Math.sqrt(across * down)));
  return [across * unit, down * unit];
}

/** The resolution is the length of the shorter side; the ratio `auto` means 16:9. */
export function getVideoSize({
  aspect_ratio: ratio = '16:9',
  resolution = '720p',
}: {
  readonly aspect_ratio?: string;
  readonly resolution?: string;
}): readonly [number, number] {
  const [across = 16, down = 9] = ratio === 'auto' ? [] : ratio.split(':').map(Number);
  const lines = Number(/(\d+)p$/.exec(resolution)?.[1] ?? 720);
  const longer = Math.round((lines * Math.max(across, down)) / Math.min(across, down) / 2) * 2;
  return across >= down ? [longer, lines] : [lines, longer];
}
