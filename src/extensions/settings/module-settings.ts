import type { ValueProvider } from '@nestjs/common';
import { type Env, type ExternalModule, secretText, settingDocs, StartError } from '../../extension.js';
import { tokenOf } from './inject-settings.decorator.js';

export interface ModuleSettings {
  provider: ValueProvider;
  /** Names of the settings, and which of them are set. Values can be secret. */
  summary: string;
  /** One warning for each variable that has the module's prefix but is not a setting. */
  warnings: string[];
  module: string;
  /** Checks the requirements of the module; undefined without a check. */
  examine: (() => Promise<string>) | undefined;
}

/**
 * Reads and checks the settings of all modules together; an empty value counts as unset.
 *
 * @throws StartError with all invalid settings, without their values
 */
export function readModuleSettings(env: Env, modules: ExternalModule[]): ModuleSettings[] {
  const problems: string[] = [];
  const reserved = new Set(settingDocs().map(({ name }) => name));
  const setNames = Object.keys(env.source).filter((name) => env.source[name]?.trim());
  const read = modules.flatMap(({ name: module, settings, doctor }): ModuleSettings[] => {
    if (!settings) return [];
    const prefix = `${module.toUpperCase().replaceAll('-', '_')}_`;
    const names = Object.keys(settings.shape);
    for (const name of names) {
      if (name.startsWith(prefix) && !reserved.has(name)) continue;
      problems.push(
        `${name} must begin with ${prefix}, and must not be a setting of Slipway: the module is ${module}.`,
      );
    }
    const unreadable = new Set<string>();
    const valueOf = (name: string) => {
      try {
        return (names.includes(`${name}_FILE`) ? env.source[name]?.trim() : secretText(env.source, name)) || undefined;
      } catch (error) {
        unreadable.add(name);
        problems.push(`${name} ${(error as Error).message}.`);
        return undefined;
      }
    };
    const values = Object.fromEntries(names.map((name) => [name, valueOf(name)]));
    const { data, error } = settings.safeParse(values);
    for (const { path, message } of error?.issues ?? []) {
      const name = String(path[0] ?? module);
      if (unreadable.has(name)) continue;
      const expected = message.replace(/^Invalid input: /, '').replace(/, received undefined$/, '');
      problems.push(`${name} ${name in values && !values[name] ? 'must be set' : 'is not valid'}: ${expected}.`);
    }
    const knownNames = new Set([...names, ...names.map((name) => `${name}_FILE`), ...reserved]);
    const unknown = setNames.filter((name) => name.startsWith(prefix) && !knownNames.has(name));
    return [
      {
        provider: { provide: tokenOf(settings), useValue: data },
        module,
        examine: doctor && (() => doctor(env, data)),
        summary: `${module}: ${names.map((name) => `${name} ${values[name] ? 'is set' : 'by default'}`).join(', ')}`,
        warnings: unknown.map(
          (name) => `${name} is not a setting and changes nothing: use ${names.join(' or ')}, or remove it.`,
        ),
      },
    ];
  });
  if (problems.length > 0) throw new StartError(problems.join('\n'));
  return read;
}
