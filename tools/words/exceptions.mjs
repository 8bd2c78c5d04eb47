/** Names, and words in texts, that are exempt from a metric, each with its reason. */

const METRIC_BY_KIND = { identifier: 'identifiers', function: 'functions', type: 'types', text: 'texts', page: 'docs' };

/** @throws Error with the number of the line that is incomplete */
export function readExceptions(table) {
  const exceptions = [];
  for (const [index, line] of table.split('\n').entries()) {
    if (index === 0 || line === '') continue;
    const [name, path, kind, reason] = line.split('\t');
    if (!name || !path || !(kind in METRIC_BY_KIND) || !reason?.trim())
      throw new Error(`line ${index + 1} of exceptions.tsv needs a name, a path, a kind and a reason: ${line}`);
    exceptions.push({ name, path, kind, reason });
  }
  return exceptions;
}

/** @returns the hits that no exception covers, and the exceptions that cover none */
export function applyExceptions(hits, exceptions) {
  const used = new Set();
  const remaining = hits.filter((hit) => {
    const matches = exceptions.filter((exception) => isCovered(hit, exception));
    for (const exception of matches) used.add(exception);
    return matches.length === 0;
  });
  return { hits: remaining, unused: exceptions.filter((exception) => !used.has(exception)) };
}

function isCovered(hit, { name, path, kind }) {
  if (METRIC_BY_KIND[kind] !== hit.metric) return false;
  if (path !== '*' && !hit.file.startsWith(path)) return false;
  return name.startsWith('word:') ? hit.entry === name.slice('word:'.length) : hit.name === name;
}
