/** Reads the declared names, the comments and the strings of a TypeScript or JavaScript file. */
import { parseSync } from '@swc/core';

const FUNCTION_VALUES = new Set(['ArrowFunctionExpression', 'FunctionExpression']);
const WRAPPERS = new Set(['ParenthesisExpression', 'TsAsExpression', 'TsSatisfiesExpression', 'TsConstAssertion']);
const KEY_TYPES = new Set(['Pick', 'Omit', 'Extract', 'Exclude']);
const TEST_FUNCTIONS = new Set(['describe', 'test', 'it']);
const TYPE_KINDS = {
  ClassDeclaration: 'class',
  ClassExpression: 'class',
  TsInterfaceDeclaration: 'interface',
  TsTypeAliasDeclaration: 'typeAlias',
  TsEnumDeclaration: 'enum',
};
const EXPORTED_TYPES = new Set(['ClassDeclaration', 'TsInterfaceDeclaration', 'TsTypeAliasDeclaration']);

/**
 * @returns `declarations` (with `isFunction` and `isExportedType`), `comments` and `strings`; every `offset` counts
 * UTF-16 units from the start of `text`
 */
export function readSyntax(text) {
  const reader = new SyntaxReader(text);
  reader.read();
  return { declarations: reader.declarations, comments: reader.comments, strings: reader.strings };
}

class SyntaxReader {
  declarations = [];
  comments = [];
  strings = [];
  #literals = [];
  #titles = new Set();
  #text;
  #start = 0;
  #typeDepth = 0;

  constructor(text) {
    this.#text = text;
  }

  read() {
    // The parser counts bytes: with one byte for every UTF-16 unit its positions are ours. An empty statement in front
    // has the position that the parser starts from, which comments before the first statement would hide.
    const ascii = this.#text.replace(/^#!/, '//').replace(/[^\0-\x7f]/g, '_');
    const module = parseSync(`;${ascii}`, { syntax: 'typescript', decorators: true, target: 'es2024' });
    this.#start = module.body[0].span.start + 1;
    for (const statement of module.body.slice(1)) this.#visit(statement);
    this.#readComments();
  }

  #toOffset(node) {
    return node.span.start - this.#start;
  }

  #declare(identifier, nodeKind, extra = {}) {
    let offset = this.#toOffset(identifier);
    if (this.#text[offset] === '#') offset++;
    this.declarations.push({ name: identifier.value, nodeKind, offset, isFunction: false, ...extra });
  }

  #visit(node) {
    if (Array.isArray(node)) {
      for (const child of node) this.#visit(child);
      return;
    }
    if (node === null || typeof node !== 'object') return;
    // An array of arguments holds `{ spread, expression }`, which has no type of its own.
    this.#readNode(node);
    const isType = node.type === 'TsTypeAliasDeclaration' || node.type === 'TsInterfaceDeclaration';
    if (isType) this.#typeDepth++;
    for (const key in node) {
      const child = node[key];
      if (key === 'span' || child === null || typeof child !== 'object') continue;
      if (isListOfKeys(node, key)) this.#visitHidden(child);
      else this.#visit(child);
    }
    if (isType) this.#typeDepth--;
  }

  /** Names of properties that exist elsewhere: `Omit<X, 'a' | 'b'>` and `X['a' | 'b']` declare no values. */
  #visitHidden(node) {
    const depth = this.#typeDepth;
    this.#typeDepth = 0;
    this.#visit(node);
    this.#typeDepth = depth;
  }

  #readNode(node) {
    switch (node.type) {
      case 'StringLiteral':
        this.#literals.push(node);
        this.#addString(node, { isRest: false, isHead: false, isTitle: this.#titles.has(node) });
        return;
      case 'RegExpLiteral':
        this.#literals.push(node);
        return;
      case 'TemplateLiteral':
      case 'TsTemplateLiteralType':
        this.#readTemplate(node);
        return;
      case 'CallExpression':
        if (isTestCall(node)) this.#titles.add(node.arguments[0]?.expression);
        return;
      case 'TsUnionType':
        if (this.#typeDepth > 0) this.#readUnion(node);
        return;
      case 'ExportDeclaration':
        node.declaration.isExported = true;
        return;
      default:
        this.#readDeclaration(node);
    }
  }

  #readDeclaration(node) {
    if (node.type in TYPE_KINDS) {
      const identifier = node.id ?? node.identifier;
      const isExportedType = node.isExported === true && EXPORTED_TYPES.has(node.type);
      if (identifier) this.#declare(identifier, TYPE_KINDS[node.type], { isExportedType });
      return;
    }
    switch (node.type) {
      case 'FunctionDeclaration':
      case 'FunctionExpression':
        if (node.identifier) this.#declare(node.identifier, 'function', { isFunction: true });
        return;
      case 'VariableDeclarator':
        this.#declarePattern(node.id, 'variable', node.init);
        return;
      case 'CatchClause':
        this.#declarePattern(node.param, 'variable');
        return;
      case 'Parameter':
        this.#declarePattern(node.pat, 'parameter');
        return;
      case 'TsParameterProperty':
        this.#declarePattern(node.param, 'parameterProperty');
        return;
      case 'SetterProperty':
        this.#declareKey(node, 'setter', false);
        return;
      case 'ArrowFunctionExpression':
      case 'TsFunctionType':
      case 'TsConstructorType':
      case 'TsCallSignatureDeclaration':
      case 'TsConstructSignatureDeclaration':
      case 'TsIndexSignature':
        this.#declareParameters(node.params);
        return;
      case 'TsTypeParameter':
        this.#declare(node.name, 'typeParameter');
        return;
      case 'TsTupleElement':
        if (node.label?.type === 'Identifier') this.#declare(node.label, 'tupleElement');
        return;
      case 'TsEnumMember':
        if (node.id.type === 'Identifier') this.#declare(node.id, 'enumMember');
        return;
      case 'ImportSpecifier':
        if (node.imported) this.#declare(node.local, 'importAlias');
        return;
      default:
        this.#readMember(node);
    }
  }

  #readMember(node) {
    switch (node.type) {
      case 'ClassProperty':
      case 'PrivateProperty':
        this.#declareKey(node, 'property', isFunctionValue(node.value) || isFunctionType(node.typeAnnotation));
        return;
      case 'ClassMethod':
      case 'PrivateMethod':
        this.#declareKey(node, node.kind, node.kind === 'method');
        return;
      case 'TsPropertySignature':
        this.#declareKey(node, 'propertySignature', isFunctionType(node.typeAnnotation));
        return;
      case 'TsMethodSignature':
        this.#declareKey(node, 'methodSignature', true);
        this.#declareParameters(node.params);
        return;
      case 'TsGetterSignature':
        this.#declareKey(node, 'getter', false);
        return;
      case 'KeyValueProperty':
        this.#declareKey(node, 'objectKey', isFunctionValue(node.value));
        return;
      case 'MethodProperty':
        this.#declareKey(node, 'objectMethod', true);
        return;
      case 'GetterProperty':
        this.#declareKey(node, 'getter', false);
        return;
      case 'ObjectExpression':
        for (const property of node.properties)
          if (property.type === 'Identifier') this.#declare(property, 'shorthandKey');
    }
  }

  #declareKey(node, nodeKind, isFunction) {
    const key = node.key;
    if (node.computed === true) return;
    if (key.type === 'Identifier') this.#declare(key, nodeKind, { isFunction });
    if (key.type === 'PrivateName')
      this.#declare({ span: key.span, value: key.value ?? key.id.value }, nodeKind, { isFunction });
  }

  #declareParameters(parameters) {
    // Parameters of methods are `Parameter` nodes, which declare themselves.
    for (const parameter of parameters)
      if (parameter.type !== 'Parameter') this.#declarePattern(parameter, 'parameter');
  }

  #declarePattern(pattern, nodeKind, value) {
    switch (pattern?.type) {
      case 'Identifier': {
        if (pattern.value === 'this') return;
        const isFunction = isFunctionValue(value) || isFunctionType(pattern.typeAnnotation);
        this.#declare(pattern, nodeKind, { isFunction });
        return;
      }
      case 'AssignmentPattern':
        this.#declarePattern(pattern.left, nodeKind, pattern.right);
        return;
      case 'RestElement':
        this.#declarePattern(pattern.argument, nodeKind);
        return;
      case 'ArrayPattern':
        for (const element of pattern.elements) this.#declarePattern(element?.expression ?? element, 'binding');
        return;
      case 'ObjectPattern':
        for (const property of pattern.properties) this.#declareBinding(property);
    }
  }

  #declareBinding(property) {
    if (property.type === 'AssignmentPatternProperty') this.#declare(property.key, 'shorthandBinding');
    else if (property.type === 'KeyValuePatternProperty') this.#declarePattern(property.value, 'binding');
    else this.#declarePattern(property, 'binding');
  }

  #readUnion(union) {
    for (const member of union.types) {
      const literal = member.type === 'TsLiteralType' ? member.literal : undefined;
      if (literal?.type !== 'StringLiteral' || !/^[A-Za-z][\w-]*$/.test(literal.value)) continue;
      this.declarations.push({
        name: literal.value,
        nodeKind: 'literal',
        offset: this.#toOffset(literal) + 1,
        isFunction: false,
      });
    }
  }

  #readTemplate(template) {
    const head = this.#slice(template.quasis[0]);
    const isTitle = this.#titles.has(template);
    for (const [index, quasi] of template.quasis.entries()) {
      this.#literals.push(quasi);
      const isHead = index === 0 && template.quasis.length > 1;
      this.#addString(quasi, { isRest: index > 0, isHead, head, isTitle });
    }
  }

  #addString(node, kind) {
    const quote = node.type === 'StringLiteral' ? 1 : 0;
    this.strings.push({ text: this.#slice(node, quote), offset: this.#toOffset(node) + quote, ...kind });
  }

  /** Escapes become other characters of the same length: a word that follows `\\n` must not begin with `n`. */
  #slice(node, quote = 0) {
    const source = this.#text.slice(this.#toOffset(node) + quote, node.span.end - this.#start - quote);
    return source.replace(/\\([\s\S])/g, (_, character) => (/\w/.test(character) ? '  ' : ` ${character}`));
  }

  #readComments() {
    const literals = this.#literals.sort((a, b) => a.span.start - b.span.start);
    let position = 0;
    for (const literal of literals) {
      position = this.#readCommentsBetween(position, this.#toOffset(literal));
      position = Math.max(position, literal.span.end - this.#start);
    }
    this.#readCommentsBetween(position, this.#text.length);
  }

  #readCommentsBetween(start, end) {
    const comment = /\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
    comment.lastIndex = start;
    for (let match = comment.exec(this.#text); match && match.index < end; match = comment.exec(this.#text))
      this.comments.push({ text: match[0], offset: match.index });
    return end;
  }
}

function isListOfKeys(node, key) {
  if (node.type === 'TsIndexedAccessType') return key === 'indexType';
  if (key !== 'typeParams' && key !== 'typeArguments') return false;
  return KEY_TYPES.has((node.typeName ?? node.expression)?.value);
}

/** `test('…')`, `test.only('…')` and `describe.each(rows)('…')`. */
function isTestCall({ callee }) {
  let target = callee;
  while (target.type === 'MemberExpression' || target.type === 'CallExpression')
    target = target.object ?? target.callee;
  return target.type === 'Identifier' && TEST_FUNCTIONS.has(target.value);
}

function isFunctionValue(value) {
  if (!value) return false;
  return FUNCTION_VALUES.has(value.type) || (WRAPPERS.has(value.type) && isFunctionValue(value.expression));
}

function isFunctionType(node) {
  switch (node?.type) {
    case 'TsFunctionType':
      return true;
    case 'TsTypeAnnotation':
    case 'TsParenthesizedType':
      return isFunctionType(node.typeAnnotation);
    case 'TsUnionType':
      return node.types.some(isFunctionType);
    default:
      return false;
  }
}
