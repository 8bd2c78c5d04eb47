import { describe, expect, test } from '@jest/globals';

interface Hit {
  readonly metric: string;
  readonly line: number;
  readonly offset: number;
  readonly name: string;
  readonly nodeKind: string;
  readonly entry: string;
}
type Counts = Readonly<Record<string, number>>;
interface Modules {
  findHits(files: readonly { file: string; text: string }[], glossary: unknown): readonly Hit[];
  countHits(hits: readonly Hit[]): Counts;
  readGlossary(table: string): unknown;
  readExceptions(table: string): readonly object[];
  applyExceptions(hits: readonly Hit[], exceptions: readonly object[]): { hits: readonly Hit[]; unused: object[] };
  compareCounts(baseline: Counts, counts: Counts): { higher: string[]; lower: string[] };
  lowerBaseline(baseline: Counts, counts: Counts): { next: Counts; raised: string[] };
}

// The modules are plain JavaScript, which has no declarations to import.
const names = ['count', 'glossary', 'exceptions', 'baseline'];
const modules: Modules = Object.assign({}, ...(await Promise.all(names.map((name) => import(`./${name}.mjs`)))));
const { findHits, countHits, readExceptions, applyExceptions, compareCounts, lowerBaseline } = modules;

const glossary = modules.readGlossary(
  [
    'now\tterm\tkind\tmeaning\tstays where',
    'asked\trequested\tword in text, variable, function, type\tA request.\tevent WalletAsked',
    'told\tsent\tword in text, variable, function\tA message.\t',
    'why\treason\tvariable (bare), function (bare), type (bare)\tThe reason.\t',
    'found\tmatch\tvariable (bare), type (bare)\tThe result.\t',
    'turn\tlease\tvariable, function\tA lease.\tconversations in:libs/application/src/inference',
    'facts\tevents\tword in text\tEvents.\t',
    'why (field)\t(stays)\tvariable\tA reason.\tstored event field',
    'told_at, asked_by\t(stays)\tword in text\tTimes.\tcolumn',
    'WalletAsked\t(stays)\ttype\tAn event.\tstored event type',
    'too_much_asked\t(stays)\tword in text\tA code.\tstored',
  ].join('\n'),
);

function findIn(text: string, file = 'libs/domain/src/example.ts'): readonly Hit[] {
  return findHits([{ file, text }], glossary);
}

function listNames(metric: string, text: string, file?: string): string[] {
  return findIn(text, file)
    .filter((hit) => hit.metric === metric)
    .map(({ nodeKind, name }) => `${nodeKind} ${name}`);
}

describe('declared names', () => {
  test('count if they contain an entry of the glossary', () => {
    const text = 'const askedAt = 1; function tellAll(toldNow: string) {} class Reply { told = 1; #asked = 2; }';
    expect(listNames('identifiers', text)).toEqual([
      'variable askedAt',
      'parameter toldNow',
      'property told',
      'property asked',
    ]);
  });

  test('count for a bare entry only as a complete name, also of a type', () => {
    expect(listNames('identifiers', 'const why = 1; const whyNot = 2; interface Found {}')).toEqual([
      'variable why',
      'interface Found',
    ]);
  });

  test('count as keys of objects, unless the key is quoted or computed', () => {
    const text = "send({ asked: 1, told, asked() {}, 'x-asked': 2, [asked]: 3 });";
    expect(listNames('identifiers', text).sort()).toEqual([
      'objectKey asked',
      'objectMethod asked',
      'shorthandKey told',
    ]);
  });

  test('count as the variables that destructuring creates, not as the keys that it reads', () => {
    const text = 'const { asked, told: reply, a: { told = 1 }, ...toldRest } = body; const [toldFirst] = list;';
    expect(listNames('identifiers', text)).toEqual([
      'shorthandBinding asked',
      'shorthandBinding told',
      'binding toldRest',
      'binding toldFirst',
    ]);
  });

  test('count as type parameters and as aliases of imports', () => {
    const text = "import { send as told } from './send.ts'; function run<Asked>() {}";
    expect(listNames('identifiers', text)).toEqual(['importAlias told', 'typeParameter Asked']);
  });

  test('count as members of unions of strings in type aliases, not where the union names properties', () => {
    const text =
      "type Kind = 'asked' | 'never told' | 'new'; type Part = Omit<Kind, 'told' | 'new'>; let x: 'told' | 'new';";
    expect(listNames('identifiers', text)).toEqual(['literal asked']);
  });

  test('do not count where the glossary allows the entry', () => {
    expect(listNames('identifiers', 'const turn = 1;', 'libs/application/src/inference/chat.ts')).toEqual([]);
    expect(listNames('identifiers', 'const turn = 1;')).toEqual(['variable turn']);
  });

  test('do not count in specs', () => {
    expect(listNames('identifiers', 'const asked = 1;', 'libs/domain/src/example.spec.ts')).toEqual([]);
  });

  test('have their positions in UTF-16 units, also after a comment that is not ASCII', () => {
    const text = '// ü € 𝒳\nconst s = "ß";\nconst x = 0, asked = 1;';
    expect(findIn(text)).toMatchObject([{ line: 3, offset: text.indexOf('asked'), name: 'asked' }]);
  });
});

describe('a name that stays', () => {
  test('is exempt as a property, or as the variable of its destructuring, if it is a stored field', () => {
    const text = 'interface Data { why: string } const { why } = data; save({ why: 1 }); save({ why });';
    expect(listNames('identifiers', text)).toEqual([]);
    expect(listNames('identifiers', 'const why = 1; function f(why: string) {}')).toEqual([
      'variable why',
      'parameter why',
    ]);
  });

  test('is exempt as a property if it is a column; a row of the glossary can name several', () => {
    expect(listNames('identifiers', 'interface Row { told_at: Date; asked_by: string }')).toEqual([]);
    expect(listNames('identifiers', 'const asked_by = 1;')).toEqual(['variable asked_by']);
  });

  test('is exempt as a type, key or literal if it is a stored event type', () => {
    const text = "interface WalletAsked {} type Name = 'WalletAsked' | 'Other'; const folds = { WalletAsked: 1 };";
    expect(listNames('identifiers', text)).toEqual([]);
    expect(listNames('identifiers', 'const WalletAsked = 1;')).toEqual(['variable WalletAsked']);
  });

  test('is exempt as a literal if it is an error code', () => {
    expect(listNames('identifiers', "type Code = 'too_much_asked' | 'other';")).toEqual([]);
  });

  test('can be any property or type in a file of requests, but no variable', () => {
    const text = 'class AskedBody { asked = 1 } const { told } = body; const asked = { told: 1 };';
    expect(listNames('identifiers', text, 'apps/gateway/src/x.requests.ts')).toEqual(['variable asked']);
  });
});

describe('functions', () => {
  test('count if their name ends in Of or In', () => {
    const text = 'function textOf() {} const usageIn = () => 1; const valueOf = () => 1; const listOf = [1];';
    expect(listNames('functions', text)).toEqual(['function textOf', 'variable usageIn']);
  });

  test('count if they are named by a bare participle; values and getters do not', () => {
    const text = 'function listing() {} class Log { parsed() {} get heading() { return 1 } setting = 1; feed() {} }';
    expect(listNames('functions', text)).toEqual(['function listing', 'method parsed']);
  });

  test('count as values of keys, and as parameters and members that have the type of a function', () => {
    const text = `use({ partOf: (x) => x, sent() {} });
      interface Reader { textOf?: ((x: string) => string) | undefined; idOf(): string; read: (x: string) => string }
      function run(keyOf: (x: string) => string, read = (x) => x) {}`;
    expect(listNames('functions', text)).toEqual([
      'objectKey partOf',
      'objectMethod sent',
      'propertySignature textOf',
      'methodSignature idOf',
      'parameter keyOf',
    ]);
  });
});

describe('exported types', () => {
  test('count once if two files of the product have one of the same name', () => {
    const files = ['libs/a.ts', 'apps/b.ts', 'libs/testing/src/c.ts'].map((file) => ({
      file,
      text: `export interface Same {} interface Local {} ${file.startsWith('libs/') ? 'export class Twin {}' : ''}`,
    }));
    const hits = findHits(files, glossary);
    expect(hits.map(({ name }) => name)).toEqual(['Same', 'Same']);
    expect(countHits(hits).types).toBe(1);
  });
});

describe('texts', () => {
  test('are comments and messages; strings that resemble comments are not comments', () => {
    const text = `// facts\nconst a = '// facts here';\n/* \`facts\` */ const b = /[/*] facts/; f(\`facts \${a} told\`);`;
    expect(listNames('texts', text)).toEqual(['comment facts', 'message facts', 'message facts', 'message told']);
    expect(listNames('texts', text, 'libs/example.spec.ts')).toEqual(['comment facts']);
  });

  test('exclude SQL', () => {
    expect(listNames('texts', `f(\`select facts from \${table} where facts\`);`)).toEqual([]);
  });

  test('are names of tests, also in specs', () => {
    const text = `test('facts', f); describe.each(rows)('told %s', f); test.skip(\`asked \${a} told\`, f); run('facts told');`;
    expect(listNames('texts', text, 'libs/a.spec.ts')).toEqual([
      'title facts',
      'title told',
      'title asked',
      'title told',
    ]);
  });

  test('are pages, without code and addresses', () => {
    expect(listNames('docs', 'facts `facts` https://x.test/facts', 'docs/a.md')).toEqual(['page facts']);
  });
});

describe('exceptions', () => {
  const header = 'name\tpath\tkind\treason\n';
  const hits = findIn('const asked = 1; const toldNow = 1;');

  test('exempt a name or an entry below a path', () => {
    const table = `${header}asked\tlibs/domain\tidentifier\tforced\nword:told\t*\tidentifier\tforced\n`;
    expect(applyExceptions(hits, readExceptions(table))).toEqual({ hits: [], unused: [] });
  });

  test('are unused if they exempt nothing', () => {
    const table = `${header}asked\tapps\tidentifier\tforced\ntoldNow\t*\tfunction\tforced\n`;
    const { hits: remaining, unused } = applyExceptions(hits, readExceptions(table));
    expect(remaining).toHaveLength(2);
    expect(unused).toHaveLength(2);
  });

  test('need a reason', () => {
    expect(() => readExceptions(`${header}asked\t*\tidentifier\t \n`)).toThrow('line 2');
  });
});

describe('the baseline', () => {
  test('reports every count that is higher or lower', () => {
    expect(compareCounts({ a: 1, b: 2, c: 3 }, { a: 2, b: 1, c: 3 })).toEqual({ higher: ['a'], lower: ['b'] });
  });

  test('falls to lower counts, does not rise to higher ones, and includes new metrics', () => {
    expect(lowerBaseline({ a: 1, b: 2 }, { a: 2, b: 1 })).toEqual({ next: { a: 1, b: 1 }, raised: ['a'] });
    expect(lowerBaseline({}, { a: 2 })).toEqual({ next: { a: 2 }, raised: [] });
  });
});
