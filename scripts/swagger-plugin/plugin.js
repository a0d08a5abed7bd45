/**
 * The plugin of @nestjs/swagger, for checkouts in any folder. The compiler escapes letters outside of ASCII in the paths of types
 * (`/home/m\u00FCller`), and the plugin turns a backslash into a slash, so it gets them decoded.
 */
import * as plugin from '@nestjs/swagger/plugin';

const decoded = (text) => text.replace(/\\u([0-9A-F]{4})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));

/** For nest-cli.json. */
export const before = (options, program) => {
  const checker = program.getTypeChecker();
  const { typeToString } = checker;
  checker.typeToString = (...args) => decoded(typeToString(...args));
  return plugin.before(options, program);
};
export const { ReadonlyVisitor } = plugin;
