/** Finds every hit of every metric in the files of the project. */
import { checkFunctionName, isMessage } from './rules.mjs';
import { readSyntax } from './syntax.mjs';

export const METRICS = {
  identifiers: 'declared names that contain a private word',
  functions: 'functions named xOf or xIn, or by a bare participle, adjective or adverb',
  types: 'names shared by exported types',
  texts: 'private words in comments, messages and names of tests',
  docs: 'private words in pages',
};

const isSpec = (file) => /\.spec\./.test(file);
const isSource = (file) => /^(apps|libs|infra|tools)\//.test(file);
const isProduct = (file) =>
  /^(apps|libs|infra)\//.test(file) && !/^(apps\/sandbox|libs\/testing)\//.test(file) && !isSpec(file);
/** The word lists of this tool are not messages. */
const hasMessages = (file) => isSource(file) && !file.startsWith('tools/words/') && !isSpec(file);
const isPage = (file) => /\.md$/.test(file);
const isCode = (file) => /\.(ts|mts|mjs)$/.test(file) && !file.endsWith('.d.ts');

/**
 * @param files `{ file, text }` with paths from the root of the project
 * @returns hits: `{ metric, file, line, column, offset, name, nodeKind, entry, term }`
 */
export function findHits(files, glossary) {
  const finder = new HitFinder(glossary);
  for (const { file, text } of files) {
    if (isCode(file)) finder.readCode(file, text);
    else if (isPage(file)) finder.readText(file, text, { metric: 'docs', nodeKind: 'page', offset: 0, text });
  }
  return [...finder.hits, ...finder.findSharedTypes()];
}

/** @returns the number of hits of every metric; a shared name of types counts once */
export function countHits(hits) {
  const counts = Object.fromEntries(Object.keys(METRICS).map((metric) => [metric, 0]));
  for (const { metric } of hits) counts[metric]++;
  counts.types = new Set(hits.filter(({ metric }) => metric === 'types').map(({ name }) => name)).size;
  return counts;
}

class HitFinder {
  hits = [];
  #types = new Map();
  #glossary;

  constructor(glossary) {
    this.#glossary = glossary;
  }

  readCode(file, text) {
    const { declarations, comments, strings } = readSyntax(text);
    const locate = createLocator(text);
    for (const comment of comments)
      this.readText(file, text, { ...comment, metric: 'texts', nodeKind: 'comment', locate });
    for (const string of strings)
      if (string.isTitle || (hasMessages(file) && isMessage(string) && !this.#glossary.isFixedString(string.text)))
        this.readText(file, text, {
          ...string,
          metric: 'texts',
          nodeKind: string.isTitle ? 'title' : 'message',
          locate,
        });
    if (!isSource(file) || isSpec(file)) return;
    for (const declaration of declarations) this.#readDeclaration(file, declaration, locate);
  }

  readText(file, source, { text, offset, metric, nodeKind, locate = createLocator(source) }) {
    for (const { entry, term, index } of this.#glossary.matchText(text, file))
      this.hits.push({ metric, file, ...locate(offset + index), name: entry, nodeKind, entry, term });
  }

  /** Names of two or more exported types of the product in different files. */
  findSharedTypes() {
    const shared = [...this.#types.values()].filter((hits) => new Set(hits.map(({ file }) => file)).size > 1);
    return shared.flat();
  }

  #readDeclaration(file, declaration, locate) {
    const { name, nodeKind, offset, isFunction, isExportedType } = declaration;
    const location = { file, ...locate(offset), name, nodeKind };
    for (const { entry, term } of this.#glossary.matchName(declaration, file))
      this.hits.push({ metric: 'identifiers', ...location, entry, term });
    const problem = isFunction ? checkFunctionName(name) : undefined;
    if (problem) this.hits.push({ metric: 'functions', ...location, entry: name, term: problem });
    if (isExportedType && isProduct(file)) {
      const hit = { metric: 'types', ...location, entry: name, term: 'a name that no other exported type has' };
      this.#types.set(name, [...(this.#types.get(name) ?? []), hit]);
    }
  }
}

/** Returns a function from an offset to `{ line, column, offset }`; lines and columns start at 1. */
function createLocator(text) {
  let starts;
  return (offset) => {
    starts ??= [...text.matchAll(/^/gm)].map(({ index }) => index);
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (starts[middle] <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - starts[low] + 1, offset };
  };
}
