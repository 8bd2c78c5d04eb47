/** Reads the glossary, and finds its entries in names and texts. */

const PROPERTY_KINDS = new Set([
  'property',
  'propertySignature',
  'parameterProperty',
  'objectKey',
  'shorthandKey',
  'shorthandBinding',
]);
const TYPE_KINDS = new Set(['class', 'interface', 'typeAlias', 'enum']);
const WIRE_FILE = /(\.schemas|\.requests|-wire)\.ts$/;
const KEEP_ALIVE = /keep_?(alive|idle)/i;
const STORED_NAME = /\bfield|\bcolumn/;

/** Splits `HTTPBody_maxBytes` into `http`, `body`, `max` and `bytes`. */
export function splitName(name) {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
    .map((part) => part.toLowerCase());
}

/** @param table tab-separated: name, replacement or `(stays)`, kinds, meaning, where the name stays */
export function readGlossary(table) {
  const glossary = new Glossary();
  for (const line of table.split('\n').slice(1)) {
    const [names = '', term = '', kind = '', , stays = ''] = line.split('\t');
    if (names === '' || names === term || /^x(Of|In)$| \(name\)$/.test(names)) continue;
    if (term === '(stays)') glossary.addFixed(names, kind, stays);
    else glossary.addEntry(names, term, kind, stays);
  }
  return glossary;
}

class Glossary {
  #anywhere = new Map();
  #bare = new Map();
  #inText = new Map();
  #allowedPaths = new Map();
  #fixed = { properties: new Set(), types: new Set(), strings: new Set() };
  #pattern;

  addFixed(names, kind, stays) {
    for (const name of names.split(/,\s*/).map((text) => text.replace(/ \(field\)$/, ''))) {
      if (kind === 'type') this.#fixed.types.add(name);
      // Tables of code have a key for every event type or error code; rows have a key for every column.
      const isKey = kind === 'type' || kind === 'variable' || STORED_NAME.test(stays) || name.includes('_');
      if (isKey) this.#fixed.properties.add(name);
      if (kind !== 'variable') this.#fixed.strings.add(name);
    }
  }

  addEntry(name, term, kind, stays) {
    const key = name.toLowerCase();
    const paths = [...stays.matchAll(/\bin:(\S+)/g)].map(([, path]) => path);
    if (paths.length > 0) this.#allowedPaths.set(key, paths);
    if (/\b(variable|function|type) \(bare\)/.test(kind)) this.#bare.set(name, { term, isType: /type/.test(kind) });
    else if (/\b(variable|function|type)\b/.test(kind) && !name.includes(' ')) this.#anywhere.set(key, term);
    if (/word in text(?! \(advice\))/.test(kind)) this.#inText.set(key, term);
  }

  /** @returns the entries that a declared name contains, without those that are allowed there */
  matchName({ name, nodeKind }, file) {
    if (this.#isFixed(name, nodeKind, file) || KEEP_ALIVE.test(name)) return [];
    const matches = [];
    const bare = this.#getBare(name, nodeKind);
    if (bare && !this.#isAllowed(bare.entry, file)) matches.push(bare);
    for (const entry of new Set(splitName(name))) {
      const term = this.#anywhere.get(entry);
      if (term !== undefined && !this.#isAllowed(entry, file)) matches.push({ entry, term });
    }
    return matches;
  }

  /** @returns the entries that a comment, a message or a page contains, with their positions */
  matchText(text, file) {
    this.#pattern ??= this.#createPattern();
    const matches = [];
    for (const match of hideCode(text).matchAll(this.#pattern)) {
      const entry = match[0].toLowerCase().replace(/\s+/g, ' ');
      if (!this.#isAllowed(entry, file)) matches.push({ entry, term: this.#inText.get(entry), index: match.index });
    }
    return matches;
  }

  isFixedString(text) {
    return this.#fixed.strings.has(text);
  }

  #getBare(name, nodeKind) {
    const exact = this.#bare.get(name);
    if (exact) return { entry: name, term: exact.term };
    if (!TYPE_KINDS.has(nodeKind)) return undefined;
    const entry = name.charAt(0).toLowerCase() + name.slice(1);
    const bare = this.#bare.get(entry);
    return bare?.isType ? { entry, term: bare.term } : undefined;
  }

  #isFixed(name, nodeKind, file) {
    if (TYPE_KINDS.has(nodeKind)) return this.#fixed.types.has(name) || file.endsWith('.requests.ts');
    if (nodeKind === 'literal')
      return WIRE_FILE.test(file) || this.#fixed.strings.has(name) || this.#fixed.types.has(name);
    if (!PROPERTY_KINDS.has(nodeKind)) return false;
    if (this.#fixed.properties.has(name)) return true;
    return WIRE_FILE.test(file) && nodeKind !== 'parameterProperty';
  }

  #isAllowed(entry, file) {
    return this.#allowedPaths.get(entry)?.some((path) => file.startsWith(path)) ?? false;
  }

  #createPattern() {
    const entries = [...this.#inText.keys()].sort((a, b) => b.length - a.length);
    const alternatives = entries.map((entry) => entry.replace(/ /g, '\\s+')).join('|');
    return new RegExp(`(?<![\\w$'’.-])(${alternatives})(?![\\w$'’(-])`, 'gi');
  }
}

/** Replaces code and addresses by as many other characters, so that positions stay the same. */
function hideCode(text) {
  const hide = (code) => '·'.repeat(code.length);
  return text.replace(/`([^`]*)`/g, (_, code) => `\`${hide(code)}\``).replace(/https?:\/\/\S+/g, hide);
}
