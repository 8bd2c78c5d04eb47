/** A baseline has a maximum for every metric, which only falls. */

export function compareCounts(baseline, counts) {
  const names = Object.keys(counts);
  return {
    higher: names.filter((name) => counts[name] > (baseline[name] ?? 0)),
    lower: names.filter((name) => counts[name] < baseline[name]),
  };
}

/** @returns the next baseline, and the counts that would have raised it */
export function lowerBaseline(baseline, counts) {
  const names = Object.keys(counts);
  return {
    next: Object.fromEntries(names.map((name) => [name, Math.min(counts[name], baseline[name] ?? counts[name])])),
    raised: names.filter((name) => counts[name] > (baseline[name] ?? counts[name])),
  };
}
