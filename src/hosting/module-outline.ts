/**
 * Acorn with two changes against hostile modules of 10 MB.
 *
 * Syntax trees of statements are dropped as soon as they are read, since they would take some hundred bytes a token,
 * and the names of a scope are stored in a set; with acorn's list a million `let` take half an hour. Redeclarations are
 * checked down to 100 nested blocks, regular expressions and private names not at all: the engine checks them when the
 * module runs.
 */
import {
  Parser,
  type AnyNode,
  type ModuleDeclaration,
  type Options,
  type Pattern,
  type Program,
  type Statement,
} from 'acorn';

/** Statically known value of an expression: `fetch` is an object with that member, `{name}` another variable. */
export type Shape = 'function' | 'fetch' | 'true' | 'false' | 'unusable' | 'unknown' | { name: string };

export interface ModuleOutline {
  exports: Map<string, { shape: Shape; at: number }>;
  names: Map<string, Shape>;
  imports: Map<string, number>;
}

/**
 * @throws SyntaxError of acorn, with `pos`
 * @throws RangeError when the code is nested deeper than the stack
 */
export function readModule(source: string): ModuleOutline {
  const outline: ModuleOutline = { exports: new Map(), names: new Map(), imports: new Map() };
  OutlineParser.read(source, outline);
  return outline;
}

interface ParserInside {
  parseStatement(context: string | null, topLevel?: boolean, exports?: object): Statement | ModuleDeclaration;
  parseExportDeclaration(node: object): AnyNode;
  enterScope(flags: number): void;
  declareName(name: string, bindingType: number, pos: number): void;
  scopeStack: Record<'var' | 'lexical' | 'functions', NameSet>[];
  undefinedExports: Record<string, unknown>;
}

const AcornParser = Parser as unknown as { new (options: Options, input: string): ParserInside & { parse(): Program } };

const DROPPED = { type: 'EmptyStatement', start: 0, end: 0 } as Statement;

/**
 * Limit of nested blocks in which redeclared names are checked, since each `var` walks all scopes; deeper ones are left
 * to the engine.
 */
const SCOPES_MAX = 100;

class OutlineParser extends AcornParser {
  private outline: ModuleOutline | undefined;
  private isExported: boolean | undefined;

  static read(source: string, outline: ModuleOutline): void {
    const parser = new OutlineParser(
      // Private names are checked by the engine: here the check would take time proportional to their number times the
      // depth of classes.
      { ecmaVersion: 'latest', sourceType: 'module', checkPrivateFields: false },
      source,
    );
    parser.outline = outline;
    parser.parse();
  }

  override parseStatement(context: string | null, topLevel?: boolean, exports?: object): Statement | ModuleDeclaration {
    const { isExported } = this;
    this.isExported = false;
    const statement = super.parseStatement(context, topLevel, exports);
    if (topLevel && this.outline) note(statement, this.outline);
    const isDirective = statement.type === 'ExpressionStatement' && statement.expression.type === 'Literal';
    return isExported || isDirective ? statement : DROPPED;
  }

  override parseExportDeclaration(node: object): AnyNode {
    this.isExported = true;
    return super.parseExportDeclaration(node);
  }

  override enterScope(flags: number): void {
    super.enterScope(flags);
    const scope = this.scopeStack[this.scopeStack.length - 1];
    scope.var = new NameSet();
    scope.lexical = new NameSet();
    scope.functions = new NameSet();
  }

  override declareName(name: string, bindingType: number, pos: number): void {
    if (this.scopeStack.length <= SCOPES_MAX) super.declareName(name, bindingType, pos);
    else delete this.undefinedExports[name];
  }

  /**
   * Does nothing: acorn's check is quadratic in repeated group names, and the engine checks patterns when the module runs.
   */
  validateRegExpPattern(): void {}
}

class NameSet {
  0: string | undefined;
  private readonly names = new Set<string>();

  indexOf(name: string): number {
    return this.names.has(name) ? 0 : -1;
  }

  push(name: string): void {
    this[0] ??= name;
    this.names.add(name);
  }
}

function note(statement: Statement | ModuleDeclaration, outline: ModuleOutline): void {
  switch (statement.type) {
    case 'ImportDeclaration':
      noteImport(statement.source.value, statement.start, outline);
      return;
    case 'ExportAllDeclaration':
      noteImport(statement.source.value, statement.start, outline);
      if (statement.exported)
        outline.exports.set(nameOf(statement.exported), { shape: 'unknown', at: statement.start });
      return;
    case 'ExportDefaultDeclaration':
      outline.exports.set('default', { shape: shapeOf(statement.declaration), at: statement.start });
      noteDeclared(statement.declaration, outline);
      return;
    case 'ExportNamedDeclaration':
      if (statement.source) noteImport(statement.source.value, statement.start, outline);
      for (const { local, exported, start } of statement.specifiers) {
        const shape = statement.source ? 'unknown' : { name: nameOf(local) };
        outline.exports.set(nameOf(exported), { shape, at: start });
      }
      if (!statement.declaration) return;
      for (const name of noteDeclared(statement.declaration, outline)) {
        outline.exports.set(name, { shape: { name }, at: statement.start });
      }
      return;
    default:
      noteDeclared(statement, outline);
      if (statement.type !== 'ExpressionStatement' || statement.expression.type !== 'AssignmentExpression') return;
      if (statement.expression.left.type === 'Identifier') outline.names.set(statement.expression.left.name, 'unknown');
  }
}

function noteImport(value: unknown, at: number, { imports }: ModuleOutline): void {
  const name = String(value);
  if (!imports.has(name)) imports.set(name, at);
}

function noteDeclared(declaration: AnyNode, { names }: ModuleOutline): string[] {
  if (declaration.type === 'FunctionDeclaration' || declaration.type === 'ClassDeclaration') {
    if (!declaration.id) return [];
    names.set(declaration.id.name, shapeOf(declaration));
    return [declaration.id.name];
  }
  if (declaration.type !== 'VariableDeclaration') return [];
  return declaration.declarations.flatMap(({ id, init }) => {
    if (id.type !== 'Identifier') return boundNames(id);
    // Without an initializer it is assigned later, anywhere.
    names.set(id.name, init ? shapeOf(init) : 'unknown');
    return [id.name];
  });
}

function boundNames(pattern: Pattern): string[] {
  switch (pattern.type) {
    case 'Identifier':
      return [pattern.name];
    case 'ObjectPattern':
      return pattern.properties.flatMap((property) =>
        boundNames(property.type === 'Property' ? property.value : property.argument),
      );
    case 'ArrayPattern':
      return pattern.elements.flatMap((element) => (element ? boundNames(element) : []));
    case 'RestElement':
      return boundNames(pattern.argument);
    case 'AssignmentPattern':
      return boundNames(pattern.left);
    default:
      return [];
  }
}

function shapeOf(node: AnyNode): Shape {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return 'function';
    case 'Identifier':
      return { name: node.name };
    case 'ParenthesizedExpression':
      return shapeOf(node.expression);
    case 'Literal':
      return typeof node.value === 'boolean' ? `${node.value}` : 'unusable';
    case 'UnaryExpression':
      // `!0` and `!1`, the minified true and false.
      if (node.operator !== '!' || node.argument.type !== 'Literal') return 'unknown';
      return node.argument.value ? 'false' : 'true';
    case 'TemplateLiteral':
    case 'ArrayExpression':
      return 'unusable';
    case 'ObjectExpression':
      if (
        node.properties.some(
          (property) => property.type === 'Property' && !property.computed && nameOf(property.key) === 'fetch',
        )
      ) {
        return 'fetch';
      }
      return node.properties.some((property) => property.type !== 'Property' || property.computed)
        ? 'unknown'
        : 'unusable';
    default:
      return 'unknown';
  }
}

function nameOf(node: AnyNode): string {
  if (node.type === 'Identifier') return node.name;
  return node.type === 'Literal' ? String(node.value) : '';
}
