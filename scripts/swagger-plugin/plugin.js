/**
 * The plugin of @nestjs/swagger, for checkouts in any folder. The compiler escapes letters outside of ASCII in the paths of types
 * (`/home/m\u00FCller`), and the plugin turns a backslash into a slash, so it gets them decoded. The import that it adds becomes
 * that of `#api-docs`, as in the sources.
 */
import * as plugin from '@nestjs/swagger/plugin';
import ts from 'typescript';

const decoded = (text) => text.replace(/\\u([0-9A-F]{4})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));

/** For nest-cli.json. */
export const before = (options, program) => {
  const checker = program.getTypeChecker();
  const { typeToString } = checker;
  checker.typeToString = (...args) => decoded(typeToString(...args));
  const transformer = plugin.before(options, program);
  return (context) => {
    const transform = transformer(context);
    return (file) => {
      const { factory } = context;
      const changed = transform(file);
      const statements = changed.statements.map((statement) =>
        isAdded(statement)
          ? factory.createImportDeclaration(undefined, statement.importClause, factory.createStringLiteral('#api-docs'))
          : statement,
      );
      return factory.updateSourceFile(changed, statements);
    };
  };
};

/** A statement that the plugin added has no position in the source. */
const isAdded = (statement) =>
  ts.isImportDeclaration(statement) && statement.pos < 0 && statement.moduleSpecifier.text === '@nestjs/swagger';

export const { ReadonlyVisitor } = plugin;
